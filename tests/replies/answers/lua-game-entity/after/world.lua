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

-- Takes a used bullet from the pool if there is one.
function World:shoot(x, y, dx, dy)
  local bullet = table.remove(self.pool) or {}
  bullet.kind, bullet.alive = "bullet", true
  bullet.x, bullet.y = x, y
  bullet.dx, bullet.dy = dx or 0, dy or -200
  return self:add(bullet)
end

-- Empties a bullet and keeps it for the next shot.
local function recycle(pool, bullet)
  for key in pairs(bullet) do bullet[key] = nil end
  bullet.alive = false
  pool[#pool + 1] = bullet
end

local function inside(e)
  return e.x >= 0 and e.x < WIDTH and e.y >= 0 and e.y < HEIGHT
end

function World:update(dt)
  self.time = self.time + dt
  local list = self.entities
  local gone = {}
  local kept, i = 0, 1
  while i <= #list do -- the list may grow: entities can shoot
    local e = list[i]
    if e.update then e:update(dt, self) end
    e.x = e.x + (e.dx or 0) * dt
    e.y = e.y + (e.dy or 0) * dt
    if e.kind == "bullet" and not inside(e) then e.alive = false end
    if e.alive == false then
      if e.kind == "bullet" then gone[#gone + 1] = e end
    else
      kept = kept + 1
      list[kept] = e
    end
    i = i + 1
  end
  for n = #list, kept + 1, -1 do list[n] = nil end
  for _, bullet in ipairs(gone) do recycle(self.pool, bullet) end
end

function World:count(kind)
  local n = 0
  for _, e in ipairs(self.entities) do
    if not kind or e.kind == kind then n = n + 1 end
  end
  return n, ("%d of %d%%"):format(n, 100), inside
end

return World
