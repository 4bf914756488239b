package jsonread

import (
	"hash/maphash"
	"io"
	"weak"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Interner makes readers reuse equal maps and slices: those that many objects have alike, such as labels or containers,
// and those that an object has in common with its previous version. What is read with it is shared and read-only; a
// copy made by DeepCopy may be changed. It may be given to several readers one after the other. One goroutine at a time.
type Interner struct {
	// MinDigested is the size of JSON, in bytes, from which on a map or list is compared with the previous version.
	MinDigested int

	seed maphash.Seed
	// recent has the values that were added or found in this generation, by their JSON, older those of the one before.
	recent, older map[string]any
	size          int64    // memory of the values in recent, as of a Reader's limit
	lookups       int      // in recent
	seen          []uint32 // hashes of JSON that came once, each in one of few slots
	hits          [256]hitCounter
	fieldName     string // of the value that is being read, or of the list that it is in
	versions      previousVersions
}

const (
	maxInternedJSON    = 32 << 10 // bytes
	maxGenerationSize  = 48 << 20 // bytes of memory, of usual objects about 4 MiB of JSON
	maxLookups         = 1 << 17  // in a generation
	seenSlots          = 1 << 11
	maxScore, minScore = 8, -4
	probedOf256        = 8
	// maxLookahead is how many bytes may be scanned in vain for each byte read: deeply nested objects must not cost their
	// depth times their length.
	maxLookahead = 8
)

// NewInterner returns an empty Interner.
func NewInterner() *Interner {
	return &Interner{
		MinDigested: minDigested,
		seed:        maphash.MakeSeed(),
		recent:      map[string]any{},
		seen:        make([]uint32, seenSlots),
		versions: previousVersions{
			seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
			last:  map[string]weak.Pointer[version]{},
			limit: minVersions,
		},
	}
}

// internedSource carries an interner to [NewReader], past constructors of public packages that take an io.Reader.
type internedSource struct {
	io.Reader
	interner *Interner
}

// Source returns src for a [NewReader] that interns; src itself for a nil Interner.
func (i *Interner) Source(src io.Reader) io.Reader {
	if i == nil {
		return src
	}
	return &internedSource{src, i}
}

// hitCounter estimates whether lookups for fields of a name are worth their cost.
type hitCounter struct {
	score   int8  // rises with hits, falls with misses
	lookups uint8 // with few hits
}

func (c *hitCounter) hit()  { c.score = min(max(c.score, 0)+1, maxScore) }
func (c *hitCounter) miss() { c.score = max(c.score-1, minScore) }

// shouldProbe reports whether to look the value up; with few hits 8 times in 256 only. These come one after the other, as
// equal values often do.
func (c *hitCounter) shouldProbe() bool {
	if c.score > minScore {
		return true
	}
	c.lookups++ // begins again at 0 after 255
	return c.lookups <= probedOf256
}

func (in *Interner) lookup(text []byte, size int64) (v any, found bool) {
	if in.lookups++; in.lookups > maxLookups || in.size > maxGenerationSize {
		in.older = in.recent
		in.recent = make(map[string]any, len(in.older))
		in.size = 0
		in.lookups = 0
	}
	if v, found = in.recent[string(text)]; found {
		return v, true
	}
	if v, found = in.older[string(text)]; found {
		in.add(string(text), v, size)
	}
	return v, found
}

func (in *Interner) add(text string, v any, size int64) {
	in.recent[text] = v
	in.size += size
}

// seenBefore reports whether this JSON came before, and remembers it.
func (in *Interner) seenBefore(text []byte) bool {
	h := maphash.Bytes(in.seed, text)
	slot := &in.seen[h%seenSlots]
	rest := uint32(h >> 32)
	if *slot == rest {
		return true
	}
	*slot = rest
	return false
}

// internedValue looks up the object or list whose opening brace or bracket is next, and decodes it if it is not there; n
// is its node, if it has one.
func (r *Reader) internedValue(n node) (any, error) {
	in := r.interner
	counter := &in.hits[stringHash([]byte(in.fieldName))>>56]
	if !counter.shouldProbe() || r.lookahead > maxLookahead*(r.Offset()-r.objectStart)+maxInternedJSON {
		return r.decodeNode(n)
	}
	text := r.scanAhead()
	size := r.scanner.cost
	if v, found := in.lookup(text, size); found {
		r.pos += len(text)
		counter.hit()
		return v, r.Charge(size)
	}
	counter.miss()
	r.lookahead += int64(r.scanner.pos)
	if text == nil || !in.seenBefore(text) {
		return r.decodeNode(n)
	}
	kept := string(text)
	v, err := r.decodeNode(n)
	if err == nil {
		in.add(kept, v, size)
	}
	return v, err
}

// NewObject returns the object with the fields that TopValue read, as the version that the next one is compared with.
func (r *Reader) NewObject(fields map[string]any, deleted bool) *unstructuredv1.Unstructured {
	if r.interner == nil {
		return &unstructuredv1.Unstructured{Object: fields}
	}
	return r.interner.versions.add(fields, deleted)
}
