package unstructured

import "hash/maphash"

// interned remembers recent short strings, so that "metadata", "Running" or "kube-system" is allocated once and not
// for every object. It holds at most internSlots strings of internLongest bytes: a string takes the place of another
// that falls on the same pair of slots. The zero value is ready.
type interned struct {
	slots []any // strings, kept as interface values because that is how objects hold them
}

const (
	internSlots   = 512 // a power of two
	internLongest = 48
)

var internSeed = maphash.MakeSeed()

// value is b as a string in an interface value.
func (t *interned) value(b []byte) any {
	if len(b) > internLongest {
		return string(b)
	}
	if t.slots == nil {
		t.slots = make([]any, internSlots)
	}
	pair := t.slots[maphash.Bytes(internSeed, b)%(internSlots/2)*2:][:2]
	for _, v := range pair {
		if s, ok := v.(string); ok && s == string(b) {
			return v
		}
	}
	pair[0], pair[1] = string(b), pair[0]
	return pair[0]
}

// name is b as a string.
func (t *interned) name(b []byte) string {
	s, _ := t.value(b).(string)
	return s
}
