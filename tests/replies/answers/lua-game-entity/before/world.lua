-- The world: entities, updated and drawn each frame.
local World = {}
World.__index = World

local WIDTH <const>, HEIGHT <const> = 320, 200
local HELP = [[
Keys: [left] [right] to move, [space] to shoot
"Esc" quits]]
local LONG = [==[a ]] inside]==]

function World.new()
  return setmetatable({ entities = {}, time = 0, help = HELP .. LONG }, World)
end

function World:add(entity)
  self.entities[#self.entities + 1] = entity
  return entity
end

function World:shoot(x, y, dx, dy)
  return self:add({ kind = "bullet", x = x, y = y, dx = dx or 0, dy = dy or -200, alive = true })
end

local function inside(e)
  return e.x >= 0 and e.x < WIDTH and e.y >= 0 and e.y < HEIGHT
end

function World:update(dt)
  self.time = self.time + dt
  for i, e in ipairs(self.entities) do
    if e.update then e:update(dt, self) end
    e.x = e.x + (e.dx or 0) * dt
    e.y = e.y + (e.dy or 0) * dt
    if e.alive == false then
      table.remove(self.entities, i)
    end
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
