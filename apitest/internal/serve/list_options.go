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
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/apitest/internal/builtin"
	"github.com/anykind/anykind/apitest/internal/kinds"
	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/shard"
)

// listOptions are the validated parameters of a list, watch or deletecollection.
type listOptions struct {
	metainternalversion.ListOptions
	selector
	shardInfo string // the shard selector in a list's metadata
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
	text := query.Get("shardSelector") // ListOptions has no such field in older versions of apimachinery
	if !c.ShardedListAndWatch || text == "" {
		return opts, nil
	}
	var err error
	if opts.shard, err = shard.Parse(text); err != nil {
		return nil, fmt.Errorf("invalid shard selector: %w", err)
	}
	opts.shardInfo = shardInfo(text)
	return opts, nil
}

// shardInfo returns the text of a valid shard selector in the API server's form.
func shardInfo(text string) string {
	var calls []string
	for call := range strings.SplitSeq(text, "||") {
		parsed, _ := shard.Parse(call)
		calls = append(calls, fmt.Sprintf("shardRange(object.%s, %s)", parsed.Field(), parsed.Ranges()[0]))
	}
	return strings.Join(calls, " || ")
}

// selector selects objects of a resource. labels and fields may be nil.
type selector struct {
	resource *kinds.Resource
	labels   labels.Selector
	fields   fields.Selector
	shard    shard.Selector
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

// isEmpty reports whether there are no selectors besides the shard's, which the API server does not count.
func (s *selector) isEmpty() bool {
	return (s.labels == nil || s.labels.Empty()) && (s.fields == nil || s.fields.Empty())
}

// selectsAll reports whether all objects are selected.
func (s *selector) selectsAll() bool { return s.isEmpty() && s.shard.IsEverything() }

// matches reports whether an object is selected.
func (s *selector) matches(obj map[string]any) bool {
	if !s.shard.Matches(nested.String(obj, "metadata", "namespace"), types.UID(nested.String(obj, "metadata", "uid"))) {
		return false
	}
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
