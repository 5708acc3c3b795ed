-- Holds restarts until the ConfigWatch is resumed.
local mode = obj.spec.mode or "Active"
if mode ~= "Active" then
  error("spec.mode is " .. mode .. ": there is nothing to hold")
end
obj.spec.mode = "Suspended"
return obj
