-- Lets go of what is held.
local mode = obj.spec.mode or "Active"
if mode ~= "Suspended" then
  error("spec.mode is " .. mode .. ", not Suspended")
end
obj.spec.mode = "Active"
return obj
