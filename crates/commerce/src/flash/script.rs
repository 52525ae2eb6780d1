//! The scripts that Redis runs: each does all of its work or none, and nothing runs between.
//!
//! Their keys, in this order: the sale (`left`, `limit`, `until`, `moves`), what each buyer has, the
//! reservations that are not written down yet, and how those ended that are.

/// Puts a sale there unless it is: what is left, the limit of a buyer, until when, how long the keys live.
pub(super) const LOAD: &str = r"
if redis.call('HEXISTS', KEYS[1], 'left') == 1 then return 0 end
redis.call('HSET', KEYS[1], 'left', ARGV[1], 'limit', ARGV[2], 'until', ARGV[3], 'moves', 0)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
";

/// Takes units for a reservation: its id, the buyer, how many, the request, the time, how long the keys live.
pub(super) const RESERVE: &str = r"
local known = redis.call('HGET', KEYS[3], ARGV[1])
if known then
  if known == ARGV[4] then return {'known', 0} end
  return {'reused', 0}
end
if redis.call('HEXISTS', KEYS[4], ARGV[1]) == 1 then return {'known', 0} end
local sale = redis.call('HMGET', KEYS[1], 'left', 'limit', 'until')
if not sale[1] or tonumber(ARGV[5]) >= tonumber(sale[3]) then return {'over', 0} end
local left, limit, wanted = tonumber(sale[1]), tonumber(sale[2]), tonumber(ARGV[3])
if wanted > left then return {'short', left} end
if limit > 0 then
  local had = tonumber(redis.call('HGET', KEYS[2], ARGV[2]) or '0')
  if had + wanted > limit then return {'limit', had} end
  redis.call('HINCRBY', KEYS[2], ARGV[2], wanted)
end
redis.call('HINCRBY', KEYS[1], 'left', -wanted)
redis.call('HINCRBY', KEYS[1], 'moves', 1)
redis.call('HSET', KEYS[3], ARGV[1], ARGV[4])
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[6]) end
return {'held', left - wanted}
";

/// A reservation is written down, or was refused and gives its units back: its id, how it ended (nothing for written
/// down), the buyer, how many, how long the keys live.
pub(super) const SETTLE: &str = r"
if redis.call('HDEL', KEYS[3], ARGV[1]) == 0 then return 0 end
redis.call('HSET', KEYS[4], ARGV[1], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'moves', 1)
if ARGV[2] ~= '' then
  redis.call('HINCRBY', KEYS[1], 'left', ARGV[4])
  if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 then redis.call('HINCRBY', KEYS[2], ARGV[3], -ARGV[4]) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[5]) end
return 1
";

/// What is left, how often anything moved, and what is not written down yet.
pub(super) const LOOK: &str = r"
local sale = redis.call('HMGET', KEYS[1], 'left', 'moves')
return {sale[1], sale[2], redis.call('HKEYS', KEYS[3])}
";

/// Corrects what is left, unless anything has moved since a look: how often it had then, and by how much.
pub(super) const CORRECT: &str = r"
if redis.call('HGET', KEYS[1], 'moves') ~= ARGV[1] then return 0 end
if ARGV[2] ~= '0' then
  redis.call('HINCRBY', KEYS[1], 'left', ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'moves', 1)
end
return 1
";

/// Ends the sale: from now on there is nothing to reserve.
pub(super) const CLOSE: &str = r"
if redis.call('HEXISTS', KEYS[1], 'left') == 1 then
  redis.call('HSET', KEYS[1], 'until', 0)
  redis.call('HINCRBY', KEYS[1], 'moves', 1)
end
return redis.call('HLEN', KEYS[3])
";
