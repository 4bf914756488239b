package dynamic

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// checkSelectors refuses selectors that no server can read: it parses them with this same code. Which fields can be
// selected is the server's to say.
func (r *Resource) checkSelectors(verb string, opts *metav1.ListOptions) error {
	if opts == nil {
		return nil
	}
	if _, err := labels.Parse(opts.LabelSelector); err != nil {
		return r.refuseFor(err, verb, "", "the label selector %q cannot be parsed: %v", opts.LabelSelector, err)
	}
	if _, err := fields.ParseSelector(opts.FieldSelector); err != nil {
		return r.refuseFor(err, verb, "", "the field selector %q cannot be parsed: %v", opts.FieldSelector, err)
	}
	return nil
}
