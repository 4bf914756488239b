package write

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/apitest/internal/kinds"
)

// rules are the kind-specific parts of a write. The methods modify obj; old is read-only.
type rules interface {
	// coerce decodes obj: it sets defaults, removes unknown fields and returns a text for each removed field. err is a decoding
	// error, such as a number in place of a string. obj may be modified.
	coerce(obj map[string]any) (decoded map[string]any, unknown []string, err error)
	// fromStorage converts a stored object to the resource's version. toStorage converts it to the storage version.
	fromStorage(obj map[string]any)
	toStorage(obj map[string]any)
	// setDefaults sets defaults only.
	setDefaults(obj map[string]any)
	// prepareCreate and prepareUpdate reset fields ignored in the request, and set the generation.
	prepareCreate(op *operation, obj *unstructured.Unstructured)
	prepareUpdate(op *operation, obj, old *unstructured.Unstructured)
	// validate returns the validation errors of obj. old is nil for a creation.
	validate(op *operation, obj, old *unstructured.Unstructured) field.ErrorList
	// strategy returns the properties of the kind.
	strategy() *strategy
}

// ruleCache caches the rules of resources. A redefined resource is a new *kinds.Resource and replaces the cached rules.
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
