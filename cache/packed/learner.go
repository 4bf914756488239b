package packed

import (
	"bytes"
	"runtime"
	"sync/atomic"
)

const (
	// minObjects is the number of objects before the first dictionary: caches of a few objects have none.
	minObjects = 32
	// dictionarySamples is the number of objects from which a dictionary is made.
	dictionarySamples = 8
	maxDictionary     = 64 << 10
	maxDictionaries   = 8
	// outlierRatio is how many times larger than the average, relative to its JSON, an object is that the dictionary does not
	// suit.
	outlierRatio = 2.0
	// renewAfter is the number of bytes that outliers take in excess before the first renewal: about what another dictionary
	// takes. It doubles with each renewal, since some objects suit no dictionary.
	renewAfter    = 128 << 10
	maxRenewAfter = 128 << 20
)

// learner chooses the dictionary for the next object. The first is made of objects spread over the first ones of the cache. As
// objects drift, those that the dictionary does not suit are collected, and the next dictionary has some of them before what
// it takes over.
type learner struct {
	current  *dictionary // nil for none
	samples  [][]byte    // of the next dictionary
	observed int         // objects since current was made
	average  float64     // size relative to JSON, of the last hundred objects or so
	baseline float64     // lowest average since current was made
	excess   float64     // bytes that outliers take more than the baseline, since current was made
	renewAt  float64     // the excess at which current is renewed
	alive    *atomic.Int32
}

// next returns the dictionary for the next object, nil for none.
func (l *learner) next() *dictionary {
	if l.current == nil && len(l.samples) >= minObjects || l.current != nil && l.excess >= l.renewAt {
		l.renew()
	}
	return l.current
}

// observe records an object and its packed size, 0 if it is kept as JSON.
func (l *learner) observe(data []byte, packed int) {
	if l.current == nil {
		l.sample(data)
		return
	}
	if packed == 0 {
		packed = len(data)
	}
	ratio := float64(packed) / float64(max(len(data), 1))
	l.observed++
	l.average += (ratio - l.average) / float64(min(l.observed, 100))
	l.baseline = min(l.baseline, l.average)
	if ratio > outlierRatio*l.baseline {
		l.excess += float64(packed) - l.baseline*float64(len(data))
		l.sample(data)
	}
}

// sample adds an object to the samples, of which the last ones are kept.
func (l *learner) sample(data []byte) {
	if len(data) > maxDictionary/2 {
		return
	}
	if len(l.samples) >= minObjects {
		l.samples = append(l.samples[:0], l.samples[1:]...)
	}
	l.samples = append(l.samples, bytes.Clone(data))
}

// renew makes the next dictionary, unless objects still have as many as there may be.
func (l *learner) renew() {
	samples := l.samples
	l.samples, l.excess, l.observed, l.average, l.baseline = nil, 0, 0, 0, 1
	if l.alive == nil {
		l.alive, l.renewAt = new(atomic.Int32), renewAfter
	} else {
		l.renewAt = min(2*l.renewAt, maxRenewAfter)
	}
	if l.alive.Load() >= maxDictionaries {
		return
	}
	var content []byte
	for i := range min(dictionarySamples, len(samples)) {
		sample := samples[i*len(samples)/min(dictionarySamples, len(samples))]
		if len(content)+len(sample) <= maxDictionary {
			content = append(content, sample...)
		}
	}
	if l.current != nil {
		old := l.current.content
		content = append(content, old[:min(len(old), maxDictionary-len(content))]...)
	}
	next, err := newDictionary(content)
	if err != nil {
		return
	}
	if l.current != nil {
		l.current.encoder = nil // objects need its decoder only
	}
	l.current = next
	l.alive.Add(1)
	runtime.AddCleanup(next, func(alive *atomic.Int32) { alive.Add(-1) }, l.alive)
}
