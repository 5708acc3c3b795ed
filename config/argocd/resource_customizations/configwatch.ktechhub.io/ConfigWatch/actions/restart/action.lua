-- Has the targets restarted now.
local os = require("os")
if obj.spec.mode == "Observe" then
  error("spec.mode is Observe: there are no targets to restart")
end
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["configwatch.ktechhub.io/restart-requested-at"] = os.date("!%Y-%m-%dT%H:%M:%SZ")
return obj
