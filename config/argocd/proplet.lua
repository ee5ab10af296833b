-- Health of a Proplet for Argo CD. Sets nothing; `obj` is the object.
local status = obj.status or {}
local message = ""
for _, condition in ipairs(status.conditions or {}) do
    if condition.type == "Ready" then
        message = condition.message or ""
    end
end

if status.phase == "Offline" then
    return { status = "Degraded", message = message }
end
if status.phase ~= "Running" or status.observedGeneration ~= obj.metadata.generation then
    return { status = "Progressing", message = message }
end
return { status = "Healthy", message = message }
