package packed

import (
	"bytes"
	"hash/maphash"
	"runtime"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// minObjects is the number of objects before the first dictionary.
	minObjects = 16
	// dictionarySamples is the number of objects in a dictionary, and maxSample the bytes of each.
	dictionarySamples = 8
	maxSample         = maxDictionary / dictionarySamples
	maxDictionary     = 64 << 10
	maxDictionaries   = 8
	// outlierRatio: an object is an outlier if packed/len(JSON) > outlierRatio * baseline. The last maxOutliers outliers are
	// samples of the next dictionary.
	outlierRatio = 2.0
	maxOutliers  = 2 * dictionarySamples
	// renewAfter is the excess, in bytes, of outliers before the first renewal: about the size of a new dictionary. It doubles
	// with each renewal, since some objects suit no dictionary.
	renewAfter    = 128 << 10
	maxRenewAfter = 128 << 20
	// maxMisses: after so many incompressible objects in a row the dictionary is dropped. The next dictionary is learned after
	// maxMisses further objects, doubled with each drop up to maxBackoff.
	maxMisses  = 64
	maxBackoff = 1 << 20
)

// learner chooses the dictionary for the next object. The first dictionary is made from evenly spaced samples, once the objects
// are as large as the dictionary: small caches have none. As objects drift, poorly compressed objects are sampled. The next
// dictionary starts with these samples and continues with the content of the previous dictionary. Random data gets no dictionary.
type learner struct {
	current   *dictionary   // nil for none
	samples   []sample      // of the next dictionary
	observed  int           // objects since current was made
	average   float64       // mean of packed/len(JSON) over about the last hundred objects
	baseline  float64       // lowest average since current was made
	excess    float64       // bytes of outliers beyond the baseline, since current was made
	renewAt   float64       // the excess at which current is renewed
	misses    int           // consecutive objects that current could not pack
	backoff   int           // objects between the last drop and the next dictionary
	remaining int           // rest of backoff
	alive     *atomic.Int32 // dictionaries still referenced by objects
}

// sample is an object for a dictionary. Until the first dictionary, each object has a single sample, of its last version.
type sample struct {
	id   uint64 // a hash of the UID, 0 for none
	data []byte // at most maxSample bytes of the JSON
	size int    // of the JSON
}

var idSeed = maphash.MakeSeed()

// next returns the dictionary for the next object, or nil.
func (l *learner) next() *dictionary {
	if l.current != nil && l.excess >= l.renewAt {
		l.renew()
	}
	return l.current
}

// collect records an object for the first dictionary, and returns the dictionary once it pays.
func (l *learner) collect(uid types.UID, data []byte) *dictionary {
	if l.remaining > 0 {
		l.remaining--
		return nil
	}
	added := sample{data: data, size: len(data)}
	if len(data) > maxSample { // do not retain a large object after its deletion
		added.data = bytes.Clone(data[:maxSample])
	}
	if uid != "" {
		added.id = maphash.String(idSeed, string(uid))
	}
	isKnown := false
	total := 0
	for i := range l.samples {
		if added.id != 0 && l.samples[i].id == added.id {
			l.samples[i] = added
			isKnown = true
		}
		total += l.samples[i].size
	}
	if !isKnown {
		l.samples = append(l.samples, added)
		total += len(data)
	}
	content := min(dictionarySamples*total/len(l.samples), maxDictionary)
	if len(l.samples) >= minObjects && total >= tableBytes+content {
		l.renew()
	}
	return l.current
}

// observe records an object and its packed size, 0 for an incompressible object.
func (l *learner) observe(data []byte, packed int) {
	if packed == 0 {
		if l.misses++; l.misses >= maxMisses {
			l.drop()
			return
		}
		packed = len(data)
	} else {
		l.misses = 0
	}
	ratio := float64(packed) / float64(max(len(data), 1))
	l.observed++
	l.average += (ratio - l.average) / float64(min(l.observed, 100))
	l.baseline = min(l.baseline, l.average)
	if ratio <= outlierRatio*l.baseline {
		return
	}
	l.excess += float64(packed) - l.baseline*float64(len(data))
	if len(l.samples) >= maxOutliers {
		l.samples = slices.Delete(l.samples, 0, 1)
	}
	l.samples = append(l.samples, sample{data: bytes.Clone(data[:min(len(data), maxSample)])})
}

// drop drops the current dictionary after maxMisses.
func (l *learner) drop() {
	l.current.encoder = nil
	l.backoff = min(max(2*l.backoff, maxMisses), maxBackoff)
	l.current = nil
	l.samples = nil
	l.misses = 0
	l.remaining = l.backoff
}

// renew makes the next dictionary unless maxDictionaries are alive.
func (l *learner) renew() {
	samples := l.samples
	l.samples = nil
	l.excess = 0
	l.observed = 0
	l.average = 0
	l.baseline = 1
	l.renewAt = min(max(2*l.renewAt, renewAfter), maxRenewAfter)
	if l.alive.Load() >= maxDictionaries {
		return
	}
	var content []byte
	count := min(dictionarySamples, len(samples))
	for i := range count {
		content = append(content, samples[i*len(samples)/count].data...)
	}
	if l.current != nil {
		old := l.current.content
		content = append(content, old[:min(len(old), maxDictionary-len(content))]...)
	}
	next := newDictionary(content)
	if next == nil {
		return
	}
	if l.current != nil {
		l.current.encoder = nil // objects only need its decoder
	}
	l.current = next
	l.alive.Add(1)
	runtime.AddCleanup(next, func(alive *atomic.Int32) { alive.Add(-1) }, l.alive)
}
