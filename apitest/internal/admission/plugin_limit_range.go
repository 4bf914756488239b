package admission

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/apitest/internal/nested"
)

const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// setLimits sets default requests and limits of containers from the namespace's LimitRanges, and lists them in an annotation.
func (r *pluginRequest) setLimits() {
	if r.isBeingDeleted() {
		return
	}
	for _, limitRange := range r.list("", "limitranges", r.namespace) {
		requests := object{}
		limits := object{}
		for _, item := range nested.Maps(limitRange, "spec", "limits") {
			if nested.String(item, "type") == "Container" {
				for name, value := range nested.Map(item, "defaultRequest") {
					requests[name] = value
				}
				for name, value := range nested.Map(item, "default") {
					limits[name] = value
				}
			}
		}
		spec := nested.Map(r.Object, "spec")
		var notes []string
		for _, container := range nested.Maps(spec, "containers") {
			notes = append(notes, setResources(container, requests, limits, "container")...)
		}
		for _, container := range nested.Maps(spec, "initContainers") {
			notes = append(notes, setResources(container, requests, limits, "init container")...)
		}
		if len(notes) > 0 {
			annotations := nested.EnsureMap(r.Object, "metadata", "annotations")
			annotations[limitRangerAnnotation] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
		}
	}
}

// setResources sets missing requests and limits of a container and returns a description of each.
func setResources(container, requests, limits object, kind string) (notes []string) {
	for _, part := range []struct {
		field, name string
		defaults    object
	}{{"requests", "request", requests}, {"limits", "limit", limits}} {
		var set []string
		for name, value := range part.defaults {
			current := nested.Map(container, "resources", part.field)
			if _, found := current[name]; !found {
				nested.EnsureMap(container, "resources", part.field)[name] = value
				set = append(set, name)
			}
		}
		if len(set) > 0 {
			sort.Strings(set)
			notes = append(notes, fmt.Sprintf("%s %s for %s %s", strings.Join(set, ", "), part.name, kind, nested.String(container, "name")))
		}
	}
	return notes
}

func (r *pluginRequest) isBeingDeleted() bool {
	return nested.Map(r.OldObject, "metadata")["deletionTimestamp"] != nil
}

// checkLimits rejects a pod or claim outside of the namespace's LimitRanges. The error is about the first violated LimitRange.
func (r *pluginRequest) checkLimits() error {
	if r.isBeingDeleted() {
		return nil
	}
	for _, limitRange := range r.list("", "limitranges", r.namespace) {
		var errs []error
		for _, item := range nested.Maps(limitRange, "spec", "limits") {
			errs = append(errs, r.limitErrors(item)...)
		}
		if len(errs) > 0 {
			return utilerrors.NewAggregate(errs)
		}
	}
	return nil
}

func (r *pluginRequest) limitErrors(item object) (errs []error) {
	spec := nested.Map(r.Object, "spec")
	kind := nested.String(item, "type")
	switch {
	case kind == "PersistentVolumeClaim" && r.resource.Resource == "persistentvolumeclaims":
		return limitsOf(item).check(kind, quantities(nested.Map(spec, "resources"), "requests"), nil)
	case r.resource.Resource != "pods":
	case kind == "Container":
		for _, container := range append(nested.Maps(spec, "containers"), nested.Maps(spec, "initContainers")...) {
			resources := nested.Map(container, "resources")
			errs = append(errs, limitsOf(item).check(kind, quantities(resources, "requests"), quantities(resources, "limits"))...)
		}
	case kind == "Pod":
		return limitsOf(item).check(kind, podResources(spec, "requests"), podResources(spec, "limits"))
	}
	return errs
}

// podResources returns the requests or limits of a pod: max(sum over containers and sidecars, largest init container plus earlier
// sidecars). CPU and memory of spec.resources take precedence.
func podResources(spec object, field string) resourceList {
	total := resourceList{}
	sidecars := resourceList{}
	inits := resourceList{}
	for _, container := range nested.Maps(spec, "containers") {
		total.add(quantities(nested.Map(container, "resources"), field))
	}
	for _, container := range nested.Maps(spec, "initContainers") {
		own := quantities(nested.Map(container, "resources"), field)
		if nested.String(container, "restartPolicy") == "Always" {
			total.add(own)
			sidecars.add(own)
			inits.raise(sidecars)
			continue
		}
		own.add(sidecars)
		inits.raise(own)
	}
	total.raise(inits)
	for name, q := range quantities(nested.Map(spec, "resources"), field) {
		if name == "cpu" || name == "memory" {
			total[name] = q
		}
	}
	return total
}

// itemLimits are the limits of a LimitRange item.
type itemLimits struct{ minimum, maximum, ratio resourceList }

func limitsOf(item object) itemLimits {
	return itemLimits{quantities(item, "min"), quantities(item, "max"), quantities(item, "maxLimitRequestRatio")}
}

// check returns the violated limits. set has the limits of a container or pod, nil for a claim.
func (l itemLimits) check(kind string, requests, set resourceList) (errs []error) {
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range l.minimum.names() {
		add(checkMinimum(kind, name, l.minimum[name], requests, set))
	}
	for _, name := range l.maximum.names() {
		if set == nil {
			add(checkMaximum(kind, name, "request", l.maximum[name], requests))
			continue
		}
		if err := checkMaximum(kind, name, "limit", l.maximum[name], set); err != nil {
			add(err)
		} else if _, found := requests[name]; found {
			add(checkMaximum(kind, name, "request", l.maximum[name], requests))
		}
	}
	for _, name := range l.ratio.names() {
		if set != nil {
			add(checkRatio(kind, name, l.ratio[name], requests, set))
		}
	}
	return errs
}

func checkMinimum(kind, name string, minimum resource.Quantity, requests, set resourceList) error {
	usage := fmt.Sprintf("minimum %s usage per %s is %s", name, kind, minimum.String())
	request, requested := requests[name]
	limit, limited := set[name]
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", usage)
	case request.Cmp(minimum) < 0:
		return fmt.Errorf("%s, but request is %s", usage, request.String())
	case limited && limit.Cmp(minimum) < 0:
		return fmt.Errorf("%s, but limit is %s", usage, limit.String())
	}
	return nil
}

func checkMaximum(kind, name, what string, maximum resource.Quantity, values resourceList) error {
	usage := fmt.Sprintf("maximum %s usage per %s is %s", name, kind, maximum.String())
	value, found := values[name]
	switch {
	case !found:
		return fmt.Errorf("%s.  No %s is specified", usage, what)
	case value.Cmp(maximum) > 0:
		return fmt.Errorf("%s, but %s is %s", usage, what, value.String())
	}
	return nil
}

func checkRatio(kind, name string, maximum resource.Quantity, requests, set resourceList) error {
	usage := fmt.Sprintf("%s max limit to request ratio per %s is %s", name, kind, maximum.String())
	request := requests[name]
	limit := set[name]
	switch {
	case request.IsZero():
		return fmt.Errorf("%s, but no request is specified or request is 0", usage)
	case limit.IsZero():
		return fmt.Errorf("%s, but no limit is specified or limit is 0", usage)
	}
	if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > maximum.AsApproximateFloat64() {
		return fmt.Errorf("%s, but provided ratio is %f", usage, ratio)
	}
	return nil
}

// resourceList maps resource names to quantities.
type resourceList map[string]resource.Quantity

// quantities returns the resource list in a field. Invalid quantities are omitted; the decoder rejects them.
func quantities(obj object, name string) resourceList {
	out := resourceList{}
	for name, value := range nested.Map(obj, name) {
		if s, ok := value.(string); ok {
			if q, err := resource.ParseQuantity(s); err == nil {
				out[name] = q
			}
		}
	}
	return out
}

func (l resourceList) names() []string { return slices.Sorted(maps.Keys(l)) }

// add adds other to l.
func (l resourceList) add(other resourceList) {
	for name, q := range other {
		sum := l[name].DeepCopy()
		sum.Add(q)
		l[name] = sum
	}
}

// raise sets l to max(l, other) for each quantity.
func (l resourceList) raise(other resourceList) {
	for name, q := range other {
		if current, ok := l[name]; !ok || q.Cmp(current) > 0 {
			l[name] = q
		}
	}
}
