package jsonread

import (
	"hash/maphash"
	"io"
	"time"
	"weak"

	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Interner makes readers reuse equal maps and slices of many objects, such as labels or containers, and of two versions of an
// object. Interned values are shared and read-only; a copy made by DeepCopy may be changed. Several readers may use an Interner
// in turn, but not concurrently.
type Interner struct {
	// MinDigested is the minimum JSON size, in bytes, of a map or list compared with the previous version.
	MinDigested int

	seed maphash.Seed
	// recent maps JSON to the values added or found in this generation. older is the previous generation's map.
	recent, older map[string]any
	size          int64 // memory of the values in recent, as charged by a Reader
	lookups       int   // in this generation
	began         time.Time
	seen          []uint32 // hash slots for JSON seen once; a collision overwrites a slot
	hits          [256]hitCounter
	fieldName     string // of the value being read, or of the list around it
	versions      previousVersions
}

const (
	maxInternedJSON   = 32 << 10 // bytes
	maxGenerationSize = 48 << 20 // bytes of memory, from about 4 MiB of usual JSON
	maxLookups        = 1 << 17  // in a generation
	// maxGenerationAge bounds the memory of a slow stream, which would need hours for maxLookups. It is checked once in
	// lookupsPerCheck lookups.
	maxGenerationAge   = 5 * time.Minute
	lookupsPerCheck    = 1 << 6
	seenSlots          = 1 << 11
	maxScore, minScore = 8, -4
	probedOf256        = 8
	// maxLookahead is the maximum number of bytes scanned in vain for each byte read. Otherwise a deeply nested object would cost
	// its depth times its length.
	maxLookahead = 8
)

// NewInterner returns an empty Interner.
func NewInterner() *Interner {
	return &Interner{
		MinDigested: minDigested,
		seed:        maphash.MakeSeed(),
		recent:      map[string]any{},
		began:       time.Now(),
		seen:        make([]uint32, seenSlots),
		versions: previousVersions{
			seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
			last:  map[string]weak.Pointer[version]{},
			limit: minVersions,
		},
	}
}

// internedSource carries an interner to [NewReader], past public constructors with an io.Reader parameter.
type internedSource struct {
	io.Reader
	interner *Interner
}

// Source returns a source for [NewReader] with interning. For a nil Interner it returns src itself.
func (i *Interner) Source(src io.Reader) io.Reader {
	if i == nil {
		return src
	}
	return &internedSource{src, i}
}

// hitCounter estimates for a field name whether lookups are worth their cost.
type hitCounter struct {
	score   int8  // rises with hits, falls with misses
	lookups uint8 // at minScore, modulo 256
}

func (c *hitCounter) hit()  { c.score = min(max(c.score, 0)+1, maxScore) }
func (c *hitCounter) miss() { c.score = max(c.score-1, minScore) }

// shouldProbe reports whether to look a value up. At minScore, only probedOf256 of 256 values are looked up. They are
// consecutive, because equal values often are.
func (c *hitCounter) shouldProbe() bool {
	if c.score > minScore {
		return true
	}
	c.lookups++ // begins again at 0 after 255
	return c.lookups <= probedOf256
}

func (in *Interner) lookup(text []byte, size int64) (v any, found bool) {
	if in.lookups++; in.isGenerationOver() {
		in.older = in.recent
		in.recent = make(map[string]any, len(in.older))
		in.size = 0
		in.lookups = 0
		in.began = time.Now()
	}
	if v, found = in.recent[string(text)]; found {
		return v, true
	}
	if v, found = in.older[string(text)]; found {
		in.add(string(text), v, size)
	}
	return v, found
}

func (in *Interner) isGenerationOver() bool {
	return in.lookups > maxLookups || in.size > maxGenerationSize ||
		in.lookups%lookupsPerCheck == 0 && time.Since(in.began) > maxGenerationAge
}

func (in *Interner) add(text string, v any, size int64) {
	in.recent[text] = v
	in.size += size
}

// seenBefore reports whether this JSON was seen before, and remembers it.
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

// internedValue looks up the next object or list by its JSON, and decodes it on a miss. n is its node, or zero.
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

// NewObject returns an object with the fields read by TopValue. An Interner remembers the object for comparison with its next
// version, and forgets a deleted object.
func (r *Reader) NewObject(fields map[string]any, deleted bool) *unstructuredv1.Unstructured {
	if r.interner == nil {
		return &unstructuredv1.Unstructured{Object: fields}
	}
	return r.interner.versions.add(fields, deleted)
}
