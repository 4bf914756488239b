package flags

import (
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/cli/internal/flagset"
)

// Selection has the values of the selection flags.
type Selection struct {
	LabelSelector, FieldSelector string
	AllNamespaces                bool
	// ChunkSize is the number of objects in a page. 0 disables paging.
	ChunkSize int64
}

// AddFlags defines --selector, --field-selector and --all-namespaces in fs. Flags and shorthands of fs and of without are left out, as
// [Connection.AddFlags] does.
func (s *Selection) AddFlags(fs *pflag.FlagSet, without ...string) {
	flagset.Define(fs, s.defineFlags, without...)
}

func (s *Selection) defineFlags(fs *pflag.FlagSet) {
	s.defineLabelFlag(fs)
	fs.StringVar(&s.FieldSelector, "field-selector", s.FieldSelector, "Selector (field query) to filter on, supports '=', '==', and '!='.(e.g. --field-selector key1=value1,key2=value2). The server only supports a limited number of field queries per type.")
	fs.BoolVarP(&s.AllNamespaces, "all-namespaces", "A", s.AllNamespaces, "If present, list the requested object(s) across all namespaces. Namespace in current context is ignored even if specified with --namespace.")
}

// AddLabelFlag defines --selector in fs, unless fs has it. A shorthand of fs is left out.
func (s *Selection) AddLabelFlag(fs *pflag.FlagSet) { flagset.Define(fs, s.defineLabelFlag) }

func (s *Selection) defineLabelFlag(fs *pflag.FlagSet) {
	fs.StringVarP(&s.LabelSelector, "selector", "l", s.LabelSelector, "Selector (label query) to filter on, supports '=', '==', '!=', 'in', 'notin'.(e.g. -l key1=value1,key2=value2,key3 in (value3)). Matching objects must satisfy all of the specified label constraints.")
}

// AddChunkFlag defines --chunk-size in fs, unless fs has it.
func (s *Selection) AddChunkFlag(fs *pflag.FlagSet) {
	s.ChunkSize = 500
	flagset.Define(fs, func(fs *pflag.FlagSet) {
		fs.Int64Var(&s.ChunkSize, "chunk-size", s.ChunkSize, "Return large lists in chunks rather than all at once. Pass 0 to disable. This flag is beta and may change in the future.")
	})
}

// ListOptions returns the options for listing the selected objects.
func (s *Selection) ListOptions() *metav1.ListOptions {
	return &metav1.ListOptions{LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector, Limit: s.ChunkSize}
}
