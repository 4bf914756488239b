package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

// rules is the part of a write that depends on the object's kind. The methods change the objects that they get; old ones are read-only.
type rules interface {
	// coerce does what decoding does: it sets defaults, removes unknown fields and returns a text for each of those. The error
	// is one of decoding, such as a number where a string belongs. obj may be changed.
	coerce(obj map[string]any) (decoded map[string]any, unknown []string, err error)
	// fromStorage brings a stored object to the version of the resource, toStorage back.
	fromStorage(obj map[string]any)
	toStorage(obj map[string]any)
	// setDefaults sets defaults alone.
	setDefaults(obj map[string]any)
	// prepareCreate and prepareUpdate reset what the request must not set, and count the generation.
	prepareCreate(op *operation, obj *unstructured.Unstructured)
	prepareUpdate(op *operation, obj, old *unstructured.Unstructured)
	// validate returns what is wrong; old is nil for a creation.
	validate(op *operation, obj, old *unstructured.Unstructured) field.ErrorList
	// strategy returns the properties of the kind.
	strategy() *strategy
}

// ruleCache has the rules of resources. A resource that is defined anew is another one; its old rules are replaced.
type ruleCache struct {
	mu    sync.Mutex
	rules map[ruleKey]cachedRules
}

type ruleKey struct{ group, version, plural string }

type cachedRules struct {
	resource *kinds.Resource
	rules    rules
}

func (w *Writer) rulesOf(resource *kinds.Resource) rules {
	key := ruleKey{resource.Group, resource.Version, resource.Plural}
	w.rules.mu.Lock()
	defer w.rules.mu.Unlock()
	if cached, ok := w.rules.rules[key]; ok && cached.resource == resource {
		return cached.rules
	}
	var r rules
	if resource.Definition != nil {
		r = newCustomRules(w, resource)
	} else {
		r = newBuiltinRules(resource)
	}
	if w.rules.rules == nil {
		w.rules.rules = map[ruleKey]cachedRules{}
	}
	w.rules.rules[key] = cachedRules{resource, r}
	return r
}
