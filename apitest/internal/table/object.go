package table

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/apitest/internal/nested"
)

// object is a decoded object or a part of an object. Missing fields, and fields of another type, read as the zero value.
type object struct {
	content map[string]any
	now     time.Time
}

func (o object) value(path ...string) any {
	return nested.Get[any](o.content, path...)
}

func (o object) has(path ...string) bool { return o.value(path...) != nil }

func (o object) at(path ...string) object {
	return object{nested.Map(o.content, path...), o.now}
}

func (o object) text(path ...string) string {
	return nested.String(o.content, path...)
}

// textOr returns the text of a field, or alternative if the field is missing.
func (o object) textOr(alternative string, path ...string) string {
	if !o.has(path...) {
		return alternative
	}
	return o.text(path...)
}

// textUnlessEmpty returns the text of a field, or alternative if it is empty.
func (o object) textUnlessEmpty(alternative string, path ...string) string {
	if text := o.text(path...); text != "" {
		return text
	}
	return alternative
}

func (o object) number(path ...string) int64 {
	switch number := o.value(path...).(type) {
	case int64:
		return number
	case float64:
		return int64(number)
	}
	return 0
}

func (o object) flag(path ...string) bool {
	return nested.Bool(o.content, path...)
}

func (o object) list(path ...string) []object {
	items := nested.Maps(o.content, path...)
	list := make([]object, 0, len(items))
	for _, item := range items {
		list = append(list, object{item, o.now})
	}
	return list
}

func (o object) texts(path ...string) []string {
	return nested.Strings(o.content, path...)
}

func (o object) count(path ...string) int64 {
	switch value := o.value(path...).(type) {
	case []any:
		return int64(len(value))
	case map[string]any:
		return int64(len(value))
	}
	return 0
}

func (o object) name() string { return o.text("metadata", "name") }

func (o object) isDeleted() bool { return o.has("metadata", "deletionTimestamp") }

// time returns a Time or MicroTime field, or the zero time.
func (o object) time(path ...string) time.Time {
	moment, _ := time.Parse(time.RFC3339, o.text(path...))
	return moment
}

// age returns the time since creation.
func (o object) age() string { return o.since(o.time("metadata", "creationTimestamp")) }

func (o object) since(moment time.Time) string {
	if moment.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(o.now.Sub(moment))
}

// quantity returns a quantity in its canonical form, or "0".
func (o object) quantity(path ...string) string {
	value := o.value(path...)
	if value == nil {
		return "0"
	}
	quantity, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return fmt.Sprint(value)
	}
	return quantity.String()
}

// labels returns a map of labels as text, or "<none>".
func (o object) labels(path ...string) string {
	return labels.FormatLabels(nested.StringMap(o.content, path...))
}

func (o object) labelSelector(path ...string) (*metav1.LabelSelector, error) {
	found := o.at(path...)
	if found.content == nil {
		return nil, nil
	}
	selector := &metav1.LabelSelector{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.content, selector)
	return selector, err
}

// selector returns a label selector as text, or "<none>".
func (o object) selector(path ...string) string {
	selector, err := o.labelSelector(path...)
	if err != nil {
		return "<error>"
	}
	return metav1.FormatLabelSelector(selector)
}

// containers returns the names and the images of a pod's containers.
func (o object) containers(path ...string) (names, images string) {
	var allNames, allImages []string
	for _, container := range o.list(path...) {
		allNames = append(allNames, container.text("name"))
		allImages = append(allImages, container.text("image"))
	}
	return strings.Join(allNames, ","), strings.Join(allImages, ",")
}

// hasCondition reports whether the first condition of the type is true.
func (o object) hasCondition(conditionType string) bool {
	return nested.HasCondition(o.content, conditionType)
}

// maxShown is the maximum number of addresses, ports or hosts in a cell.
const maxShown = 3

// firstWithMore joins the first maxShown texts and appends the number of hidden texts.
func firstWithMore(all []string) string {
	if len(all) > maxShown {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:maxShown], ","), len(all)-maxShown)
	}
	return strings.Join(all, ",")
}
