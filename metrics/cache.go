package metrics

import (
	"maps"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/cache"
	"github.com/anykind/anykind/dynamic"
)

// cacheID has the label values of a cache.
type cacheID struct {
	name     string
	resource schema.GroupVersionResource
}

// observedCache is a *cache.Cache of any type of objects.
type observedCache interface {
	ResourceVersion() string
	Staleness() (staleness time.Duration, isKnown bool)
}

// AddCache records a cache until remove is called. name is the value of the label name, such as the program's name. A later cache with the
// same name and resource replaces the first.
func AddCache[T any](m *Metrics, name string, c *cache.Cache[T]) (remove func()) {
	id := cacheID{name: name}
	if handle, ok := c.Source().(*dynamic.Handle[T]); ok {
		id.resource = handle.APIResource().GVR
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.caches[id] = c
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.caches[id] == observedCache(c) {
			delete(m.caches, id)
		}
	}
}

// resourceVersionDigits are the digits of a resourceVersion that a metric has, as in client-go: a float64 holds 15 digits exactly.
const resourceVersionDigits = 15

func (m *Metrics) observeCaches(b *builder) {
	labels := []string{"name", "group", "version", "resource"}
	observe := func(valueOf func(observedCache) (value float64, isKnown bool)) func(func(float64, ...string)) {
		return func(record func(float64, ...string)) {
			m.mu.Lock()
			caches := maps.Clone(m.caches)
			m.mu.Unlock()
			for id, c := range caches {
				if value, isKnown := valueOf(c); isKnown {
					record(value, id.name, id.resource.Group, id.resource.Version, id.resource.Resource)
				}
			}
		}
	}
	b.gaugeFunc(observe(func(c observedCache) (float64, bool) {
		version := c.ResourceVersion()
		value, err := strconv.ParseFloat(version[max(len(version)-resourceVersionDigits, 0):], 64)
		return value, err == nil
	}), "informer_store_resource_version", "The 15 least significant digits of the resource version of the store.", labels...)
	b.gaugeFunc(observe(func(c observedCache) (float64, bool) {
		staleness, isKnown := c.Staleness()
		return staleness.Seconds(), isKnown
	}), "informer_staleness_seconds", "Seconds since the last progress of the store: an event or a bookmark of the server.", labels...)
}
