-- The world: entities, updated and drawn each frame.
local World = {}
World.__index = World

local WIDTH <const>, HEIGHT <const> = 320, 200
local HELP = [[
Keys: [left] [right] to move, [space] to shoot
"Esc" quits]]
local LONG = [==[a ]] inside]==]

function World.new()
  return setmetatable({ entities = {}, pool = {}, time = 0, help = HELP .. LONG }, World)
end

function World:add(entity)
  self.entities[#self.entities + 1] = entity
  return entity
end

function World:shoot(x, y, dx, dy)
  local bullet = table.remove(self.pool) or { kind = "bullet" }
  bullet.x, bullet.y = x, y
  bullet.dx, bullet.dy = dx or 0, dy or -200
  bullet.alive = true
  return self:add(bullet)
end

local function inside(e)
  return e.x >= 0 and e.x < WIDTH and e.y >= 0 and e.y < HEIGHT
end

function World:update(dt)
  self.time = self.time + dt
  local entities, pool = self.entities, self.pool
  local count = #entities
  local kept = 0

  for i = 1, count do
    local e = entities[i]
    if e.update then e:update(dt, self) end
    e.x = e.x + (e.dx or 0) * dt
    e.y = e.y + (e.dy or 0) * dt
    if e.kind == "bullet" and not inside(e) then
      e.alive = false
    end
    if e.alive ~= false then
      kept = kept + 1
      entities[kept] = e
    elseif e.kind == "bullet" then
      pool[#pool + 1] = e
    end
  end

  -- Entities that were added during this update stand behind `count`.
  local total = #entities
  for i = count + 1, total do
    kept = kept + 1
    entities[kept] = entities[i]
  end
  for i = total, kept + 1, -1 do
    entities[i] = nil
  end
end

function World:count(kind)
  local n = 0
  for _, e in ipairs(self.entities) do
    if not kind or e.kind == kind then n = n + 1 end
  end
  return n, ("%d of %d%%"):format(n, 100), inside
end

return World
