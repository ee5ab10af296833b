-- Health of a Task, PropellerJob, FederatedJob or TrainingRound for Argo CD. Sets nothing; `obj` is the object.
-- The controller keeps the condition Reconciling while the object is in progress, and Stalled once it has failed.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
    conditions[condition.type] = condition
end

local function health(word, condition, otherwise)
    local message = otherwise
    if condition ~= nil and (condition.message or "") ~= "" then
        message = condition.message
    end
    return { status = word, message = message }
end

local known = status.observedGeneration ~= nil
local current = known and status.observedGeneration == obj.metadata.generation
local reconciling = conditions.Reconciling

if obj.spec ~= nil and obj.spec.suspend and (reconciling ~= nil or not known) then
    return health("Suspended", nil, "spec.suspend is true")
end
if not current then
    return health("Progressing", nil, "the controller has not seen this version yet")
end
if conditions.Stalled ~= nil then
    return health("Degraded", conditions.Stalled, "it failed")
end
if reconciling ~= nil then
    return health("Progressing", reconciling, "it is in progress")
end
return health("Healthy", nil, status.phase or "")
