package serve

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
)

// listOptions are the validated parameters of a list, watch or deletecollection.
type listOptions struct {
	metainternalversion.ListOptions
	selector
}

// listOptions parses the query with the API server's errors.
func (c *call) listOptions() (*listOptions, error) {
	opts := &listOptions{}
	query := c.req.URL.Query()
	if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &opts.ListOptions); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	opts.Watch = opts.Watch || c.info.isDeprecatedWatch
	metainternalversion.SetListOptionsDefaults(&opts.ListOptions, true)
	if errs := metainternalvalidation.ValidateListOptions(&opts.ListOptions, true); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	if c.info.isDeprecatedWatch && c.info.Name != "" && opts.FieldSelector == nil {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", c.info.Name)
	}
	opts.selector = selector{resource: c.resource, labels: opts.LabelSelector, fields: opts.FieldSelector}
	if err := opts.checkFields(); err != nil {
		return nil, err
	}
	return opts, nil
}

// selector selects objects of a resource. labels and fields may be nil.
type selector struct {
	resource *kinds.Resource
	labels   labels.Selector
	fields   fields.Selector
}

// checkFields rejects fields unsupported by the resource. Ignoring them would select too many objects.
func (s *selector) checkFields() error {
	if s.fields == nil {
		return nil
	}
	known := s.fieldsOf(map[string]any{})
	for _, requirement := range s.fields.Requirements() {
		if _, found := known[requirement.Field]; found {
			continue
		}
		return apierrors.NewBadRequest("field label not supported: " + requirement.Field)
	}
	return nil
}

func (s *selector) isEmpty() bool {
	return (s.labels == nil || s.labels.Empty()) && (s.fields == nil || s.fields.Empty())
}

// matches reports whether an object is selected.
func (s *selector) matches(obj map[string]any) bool {
	if s.labels != nil && !s.labels.Empty() && !s.labels.Matches(labelsOf(obj)) {
		return false
	}
	return s.fields == nil || s.fields.Empty() || s.fields.Matches(s.fieldsOf(obj))
}

func (s *selector) fieldsOf(obj map[string]any) fields.Set {
	if s.resource.Definition == nil {
		return builtin.SelectableFields(s.resource.GroupResource(), obj)
	}
	metadata := nested.Map(obj, "metadata")
	name := nested.String(metadata, "name")
	set := fields.Set{"metadata.name": name}
	if s.resource.Namespaced {
		set["metadata.namespace"] = nested.String(metadata, "namespace")
	}
	for _, path := range s.resource.SelectableFields {
		set[path] = fieldText(obj, strings.Split(path, "."))
	}
	return set
}

// fieldText returns a field as text for comparison, "" if it is missing.
func fieldText(obj map[string]any, path []string) string {
	value := nested.Get[any](obj, path...)
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func labelsOf(obj map[string]any) labels.Set { return nested.StringMap(obj, "metadata", "labels") }
