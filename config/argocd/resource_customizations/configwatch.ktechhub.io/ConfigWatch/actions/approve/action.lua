-- Approves what awaits approval, or is halted, as the status shows it.
if obj.status == nil or obj.status.approvalHash == nil then
  error("nothing awaits approval: there is no status.approvalHash")
end
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["configwatch.ktechhub.io/approve"] = obj.status.approvalHash
return obj
