package discovery

import "k8s.io/apimachinery/pkg/runtime/schema"

// interner makes the resources of one document share equal strings and lists. Verbs, categories and kinds repeat thousands
// of times: with 2,000 definitions a snapshot takes half as much memory, and decoding it a fifth of the allocations. The
// tables live as long as the decoding.
type interner struct {
	texts map[string]string
	lists map[string][]string // by their texts, each followed by separator
	key   []byte
}

// separator is in no text: it is not UTF-8.
const separator = 0xFF

func newInterner() *interner {
	return &interner{texts: map[string]string{}, lists: map[string][]string{}}
}

// resources interns resources with valid names.
func (in *interner) resources(resources []*Resource) {
	for _, r := range resources {
		in.kind(&r.GVK)
		r.Verbs, r.Categories = in.list(r.Verbs), in.list(r.Categories)
		for i := range r.Subresources {
			sub := &r.Subresources[i]
			in.kind(&sub.GVK)
			sub.Name, sub.Verbs = in.text(sub.Name), in.list(sub.Verbs)
		}
	}
}

func (in *interner) kind(gvk *schema.GroupVersionKind) {
	gvk.Group, gvk.Version, gvk.Kind = in.text(gvk.Group), in.text(gvk.Version), in.text(gvk.Kind)
}

func (in *interner) text(s string) string {
	if known, ok := in.texts[s]; ok {
		return known
	}
	in.texts[s] = s
	return s
}

// bytes is text without an allocation for a known text.
func (in *interner) bytes(b []byte) string {
	if known, ok := in.texts[string(b)]; ok {
		return known
	}
	return in.text(string(b))
}

// list keeps nil and empty lists apart.
func (in *interner) list(list []string) []string {
	if list == nil {
		return nil
	}
	in.key = in.key[:0]
	for _, s := range list {
		in.key = append(append(in.key, s...), separator)
	}
	return in.listInKey(len(list))
}

// listInKey returns the list of the texts in key, of which there are n.
func (in *interner) listInKey(n int) []string {
	known, ok := in.lists[string(in.key)]
	if !ok {
		known = in.newList(n)
		in.lists[string(in.key)] = known
	}
	return known
}

// newList is listInKey for a list that is not likely to repeat.
func (in *interner) newList(n int) []string {
	list := make([]string, 0, n) // without spare capacity
	start := 0
	for i, c := range in.key {
		if c == separator {
			list = append(list, in.bytes(in.key[start:i]))
			start = i + 1
		}
	}
	return list
}
