-- What slurmctld runs at every submission, inside its lock: so it reads one small file that somebody else computed,
-- at most every few seconds, and does nothing else. It runs no process and loops over nothing unbounded.
--
-- Policy file: "weaklink-policy 1 <unix time>" on the first line, then key=value lines; at most 64 KiB.
--   mode=observe|enforce   in observe nobody sees anything of it
--   message=TEXT           shown to whoever submits, in enforce
-- A file that is missing, stale, too long or malformed is as good as none. Whatever breaks in here, the job is accepted
-- (FAIL_OPEN): a defect of ours must not stop a site's work.

local POLICY = "/var/lib/weaklink-policy/policy"
local MAX_BYTES = 65536
local MAX_LINES = 2000
local MAX_MESSAGE = 500
local KEEP = 5 -- seconds between two looks at the file
local STALE = 3600 -- seconds after which the file says nothing any more
local FAIL_OPEN = true

local cached, looked = nil, nil

-- Text of the file -> table of its keys, or nil and why not.
local function parse(text, now)
  if #text > MAX_BYTES then
    return nil, "longer than 64 KiB"
  end
  local written = text:match("^weaklink%-policy 1 (%d+)\n")
  if not written then
    return nil, "its first line is not 'weaklink-policy 1 <unix time>'"
  end
  written = tonumber(written)
  if now - written > STALE then
    return nil, "stale"
  end
  local policy, lines = {}, 0
  for line in text:gmatch("([^\n]*)\n") do
    lines = lines + 1
    if lines > MAX_LINES then
      return nil, "more lines than " .. MAX_LINES
    end
    local key, value = line:match("^([%w_]+)=(.*)$")
    if key then
      policy[key] = value
    elseif lines > 1 and line ~= "" then
      return nil, "line " .. lines .. " is not key=value"
    end
  end
  if policy.mode ~= "observe" and policy.mode ~= "enforce" then
    return nil, "its mode is neither observe nor enforce"
  end
  return policy
end

local function read(now)
  local file = io.open(POLICY, "r")
  if not file then
    return nil, "missing"
  end
  local text = file:read(MAX_BYTES + 1) or ""
  file:close()
  return parse(text, now)
end

-- The policy in force, or nil.
local function policy_at(now)
  if looked and now >= looked and now - looked < KEEP then
    return cached
  end
  looked = now
  local policy, why = read(now)
  if not policy and why ~= "missing" then
    slurm.log_info("weaklink: policy file is not used: %s", why)
  end
  cached = policy
  return policy
end

local function submit()
  local policy = policy_at(os.time())
  if policy and policy.mode == "enforce" and policy.message and policy.message ~= "" then
    -- Printable only: it goes to people's terminals.
    local message = policy.message:sub(1, MAX_MESSAGE):gsub("[%c]", "?")
    slurm.log_user("%s", message)
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local fine, result = pcall(submit)
  if fine then
    return result
  end
  -- Said within pcall too: an error out of here rejects the job on some versions.
  pcall(slurm.log_error, "weaklink: job_submit broke: %s", tostring(result))
  if FAIL_OPEN then
    return slurm.SUCCESS
  end
  return slurm.ERROR
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
