-- Run with: lua test_world.lua
local World = require("world")

local function equal(want, got, what)
  if want ~= got then
    error(("%s: expected %s, got %s"):format(what, tostring(want), tostring(got)), 2)
  end
end

do -- bullets that leave the screen are removed, on all sides
  local w = World.new()
  w:shoot(10, 1)
  w:shoot(10, 199, 0, 200)
  w:shoot(1, 100, -200, 0)
  w:shoot(319, 100, 200, 0)
  w:shoot(10, 100)
  w:update(0.1)
  equal(1, (w:count("bullet")), "bullets on the screen")
  equal(4, #w.pool, "bullets in the pool")
end

do -- other entities may leave the screen
  local w = World.new()
  w:add({ kind = "ship", x = -10, y = 0 })
  w:update(0.1)
  equal(1, (w:count("ship")), "ships")
end

do -- removing does not skip the next one
  local w = World.new()
  local updates = 0
  local function update() updates = updates + 1 end
  for n = 1, 6 do
    w:add({ kind = "thing", x = n, y = 0, alive = n % 3 == 0, update = update })
  end
  w:update(0.1)
  equal(6, updates, "updates")
  equal(2, (w:count()), "left")
  equal(3, w.entities[1].x, "order, first")
  equal(6, w.entities[2].x, "order, second")
end

do -- bullets are used again, without anything left over
  local w = World.new()
  local first = w:shoot(10, 1)
  first.power = 9
  w:update(0.1)
  local second = w:shoot(50, 60)
  equal(first, second, "the same table")
  equal(nil, second.power, "old field")
  equal(true, second.alive, "alive")
  equal(50, second.x, "x")
  equal(-200, second.dy, "dy")
  equal(0, #w.pool, "pool")
end

do -- shooting during update
  local w = World.new()
  w:add({ kind = "dead", x = 0, y = 0, alive = false })
  w:add({ kind = "ship", x = 100, y = 100, update = function(e, _, world) world:shoot(e.x, e.y) end })
  w:update(0.1)
  equal(1, (w:count("bullet")), "shot while updating")
  equal(2, (w:count()), "all")
end

print("ok")
