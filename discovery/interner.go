package discovery

// interner dedupes strings and lists of a discovery document. Verbs, categories and kinds repeat thousands of times: with 2,000
// definitions a snapshot takes half the memory, and decoding a fifth of the allocations. The tables are dropped after decoding.
type interner struct {
	texts map[string]string
	lists map[string][]string // keyed by the texts, each followed by separator
	key   []byte
}

// separator is not valid UTF-8 and thus occurs in no text.
const separator = 0xFF

func newInterner() *interner {
	return &interner{texts: map[string]string{}, lists: map[string][]string{}}
}

func (in *interner) text(s string) string {
	if known, ok := in.texts[s]; ok {
		return known
	}
	in.texts[s] = s
	return s
}

// bytes is like text, but does not allocate for a known text.
func (in *interner) bytes(b []byte) string {
	if known, ok := in.texts[string(b)]; ok {
		return known
	}
	return in.text(string(b))
}

// listInKey returns the list of the n texts in in.key.
func (in *interner) listInKey(n int) []string {
	known, ok := in.lists[string(in.key)]
	if !ok {
		known = in.newList(n)
		in.lists[string(in.key)] = known
	}
	return known
}

// newList is like listInKey without interning, for rarely repeated lists.
func (in *interner) newList(n int) []string {
	list := make([]string, 0, n) // exact capacity
	start := 0
	for i, c := range in.key {
		if c == separator {
			list = append(list, in.bytes(in.key[start:i]))
			start = i + 1
		}
	}
	return list
}
