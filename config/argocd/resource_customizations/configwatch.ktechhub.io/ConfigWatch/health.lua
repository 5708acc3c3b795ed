-- The health of a ConfigWatch, from its conditions, which are those of kstatus.
local status = obj.status
if status == nil or status.conditions == nil then
  return {status = "Progressing", message = "Waiting for the operator to report"}
end
if status.observedGeneration == nil or status.observedGeneration < obj.metadata.generation then
  return {status = "Progressing", message = "Waiting for the operator to see the latest spec"}
end

local conditions = {}
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" or condition.status == "True" then
    conditions[condition.type] = condition
  end
end
local ready = conditions["Ready"]
if ready == nil then
  return {status = "Progressing", message = "Waiting for the operator to report"}
end
if obj.spec.mode == "Suspended" then
  return {status = "Suspended", message = ready.message}
end
-- What only a human can mend comes first: the rest may go on for days, until a maintenance window opens.
if conditions["Stalled"] ~= nil then
  return {status = "Degraded", message = conditions["Stalled"].message}
end
if conditions["Reconciling"] ~= nil then
  return {status = "Progressing", message = conditions["Reconciling"].message}
end
if ready.status == "True" then
  return {status = "Healthy", message = ready.message}
end
return {status = "Degraded", message = ready.message}
