package simulate

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"
)

// choices draws the faults, delays and orders of a run. Each choice is keyed by its subject (request, event or queue key) and an
// ordinal. Its value is a number; 0 means that nothing unusual happens. The value is a function of seed and key, so leaving out a
// choice does not change the rest of the run.
type choices struct {
	seed  uint64
	fixed map[string]int    // the only unusual choices; nil: drawn from seed
	after map[string]string // maps a held key to the key released before it
	ended atomic.Bool       // nothing unusual happens from now on
	// rarity divides the weights of all alternatives; 0 means 1. The choices of a day are rare, and are not recorded.
	rarity uint64

	mu    sync.Mutex
	made  map[string]int    // unusual choices drawn before ended was set
	texts map[string]string // key to description of an unusual choice
}

// alternatives are the unusual outcomes of a choice with their weights in parts per thousand. The remainder is 0. A seed enables
// a subset of the classes and scales their weights.
type alternatives struct {
	class   string
	weights []int // of 1, 2, …
}

func (c *choices) choose(key string, a alternatives) int {
	if c.ended.Load() {
		return 0
	}
	chosen := c.fixed[key]
	if c.fixed == nil {
		chosen = c.draw(key, a)
	}
	if chosen < 0 || chosen > len(a.weights) {
		chosen = 0
	}
	if chosen != 0 {
		c.note(key, chosen)
	}
	return chosen
}

func (c *choices) note(key string, chosen int) {
	if c.rarity > 1 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[key] = chosen
}

// isUnusual reports whether there may be faults or delays.
func (c *choices) isUnusual() bool { return c.seed != 0 || c.fixed != nil || c.after != nil }

// draw chooses at random.
func (c *choices) draw(key string, a alternatives) int {
	if c.seed == 0 {
		return 0
	}
	intensity := [...]uint64{0, 1, 1, 3}[c.hash("class "+a.class)%4]
	drawn := c.hash(key) % (1000 * max(c.rarity, 1))
	for i, weight := range a.weights {
		part := uint64(weight) * intensity //nolint:gosec // small
		if drawn < part {
			return i + 1
		}
		drawn -= part
	}
	return 0
}

// index chooses among count equal possibilities.
func (c *choices) index(key string, count int) int {
	if count < 2 || c.ended.Load() {
		return 0
	}
	chosen := c.fixed[key] % count
	if c.fixed == nil && c.seed != 0 {
		chosen = int(c.hash(key) % uint64(count)) //nolint:gosec // small
	}
	if chosen != 0 {
		c.note(key, chosen)
	}
	return chosen
}

// jitter returns the random part of a delay. It depends on seed, the process, now and limit only.
func (c *choices) jitter(process string, now, limit time.Duration) time.Duration {
	if limit <= 0 || c.seed == 0 {
		return 0
	}
	return time.Duration(c.hash(process+"jitter "+now.String()+limit.String()) % uint64(limit+1)) //nolint:gosec // below limit
}

func (c *choices) hash(text string) uint64 {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, c.seed)
	_, _ = h.Write([]byte(text))
	// The low bits of FNV are poorly mixed: finalize the hash.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// copy returns the same choices for a new run.
func (c *choices) copy() *choices { return &choices{seed: c.seed, fixed: c.fixed, after: c.after} }

// recordedChoices is the form of Failure.Replay.
type recordedChoices struct {
	Seed  uint64            `json:"seed,omitempty"`
	Fixed map[string]int    `json:"fixed"`
	After map[string]string `json:"after,omitempty"`
}

// encode returns the choices as text, "" for none.
func (c *choices) encode() string {
	if !c.isUnusual() {
		return ""
	}
	text, _ := json.Marshal(recordedChoices{c.seed, c.fixed, c.after})
	return string(text)
}

// decodeChoices returns the choices of a text of encode.
func decodeChoices(text string) (*choices, error) {
	var recorded recordedChoices
	err := json.Unmarshal([]byte(text), &recorded)
	return &choices{seed: recorded.Seed, fixed: recorded.Fixed, after: recorded.After}, err
}

// describe records the meaning of an unusual choice.
func (c *choices) describe(key, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made[key] != 0 {
		c.texts[key] = text
	}
}
