package inventory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/anykind/anykind/unstructured"
)

// matchesMetadata reports whether an entry has the queried metadata and readiness. It unpacks no object but an unschedulable Pod.
func (s *search) matchesMetadata(e Entry) bool {
	return (s.Namespace == "" || s.Namespace == e.Namespace) &&
		(s.Name == "" || s.Name == e.Name) &&
		(s.UID == "" || s.UID == e.UID()) &&
		(!s.Roots || len(e.Owners()) == 0) &&
		(s.labels.Empty() || s.labels.Matches(e.Labels())) &&
		(s.Readiness == "" || s.Readiness == e.Readiness())
}

// matchesObject reports whether an object satisfies FieldSelector and Text.
func (s *search) matchesObject(e Entry) bool {
	if len(s.fields) == 0 && s.Text == "" {
		return true
	}
	obj := e.Object()
	return obj != nil && !slices.ContainsFunc(s.fields, func(r fieldRequirement) bool { return !r.matches(obj) }) &&
		(s.Text == "" || containsText(obj, s.Text))
}

// fieldRequirement is a part of a field selector.
type fieldRequirement struct {
	path    []string
	value   string
	isEqual bool // otherwise the field must differ from value
}

func parseFieldSelector(text string) ([]fieldRequirement, error) {
	selector, err := fields.ParseSelector(text)
	if err != nil {
		return nil, err
	}
	var all []fieldRequirement
	for _, r := range selector.Requirements() {
		path, err := unstructured.ParsePath(r.Field)
		if err != nil {
			return nil, err
		}
		all = append(all, fieldRequirement{path, r.Value, r.Operator != selection.NotEquals})
	}
	return all, nil
}

func (r *fieldRequirement) matches(obj *unstructured.Lazy) bool {
	text := ""
	value, found, err := unstructured.Get[any](obj, r.path...)
	if err == nil && found {
		text = fmt.Sprint(value)
	}
	return (text == r.value) == r.isEqual
}

// containsText reports whether a string value of an object contains text, regardless of case. It reads the JSON without decoding it.
func containsText(obj *unstructured.Lazy, text string) bool {
	text = strings.ToLower(text)
	for rest := string(obj.JSON()); ; {
		start := strings.IndexByte(rest, '"')
		if start < 0 {
			return false
		}
		rest = rest[start+1:]
		end := 0
		isEscaped := false
		for rest[end] != '"' { // the JSON is valid
			if rest[end] == '\\' {
				isEscaped = true
				end++
			}
			end++
		}
		value := rest[:end]
		rest = rest[end+1:]
		if strings.HasPrefix(strings.TrimLeft(rest, " \t\r\n"), ":") { // the name of a field
			continue
		}
		if isEscaped {
			_ = json.Unmarshal([]byte(`"`+value+`"`), &value) // the JSON is valid
		}
		if strings.Contains(strings.ToLower(value), text) {
			return true
		}
	}
}
