-- restart: where there is something to restart. approve: where a hash is shown that isn't approved yet.
-- suspend and resume: between Active and Suspended; DryRun and Observe restart nothing, so that there is nothing to hold.
local mode = obj.spec.mode or "Active"
local approved = (obj.metadata.annotations or {})["configwatch.ktechhub.io/approve"]
local hash = (obj.status or {}).approvalHash

return {
  ["restart"] = {["disabled"] = mode == "Observe"},
  ["approve"] = {["disabled"] = hash == nil or hash == approved},
  ["suspend"] = {["disabled"] = mode ~= "Active"},
  ["resume"] = {["disabled"] = mode ~= "Suspended"},
}
