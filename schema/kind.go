package schema

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/sanitize"
)

// kindInfo has the facts about a kind for its schema.
type kindInfo struct {
	raw           []byte // JSON of the schema
	isCustom      bool   // the kind of a definition
	ignoresStatus bool   // the server removes the status of new objects: it is a subresource
	deprecation   string // of the version, or empty
	replicas      []any  // path of the number of replicas for the scale subresource, known of definitions only

	compiling sync.Once // of the rules
	compiled  Rules
	err       error
}

// setKind sets the kind of a component.
func (s *Schema) setKind(d *Document, raw []byte) {
	if len(s.GroupVersionKinds) == 0 {
		return
	}
	s.kind = &kindInfo{
		raw:           raw,
		isCustom:      s.Name == definedName(s.GroupVersionKinds[0]),
		ignoresStatus: slices.ContainsFunc(s.GroupVersionKinds, func(gvk schema.GroupVersionKind) bool { return d.statuses[gvk] }),
	}
}

// definedName returns the name of a defined kind's schema in documents: com.example.v1.Foo. Schemas of Go types are named for the
// type's package.
func definedName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// addPaths reads the paths of a document, for the kinds with a status subresource.
func (d *Document) addPaths(r *jsonread.Reader) error {
	if c, err := r.Peek(); err != nil || c != '{' {
		_, _, err = r.Skip()
		return err
	}
	return eachMember(r, "paths", func(path string) error {
		if !strings.HasSuffix(path, "/status") {
			_, _, err := r.Skip()
			return err
		}
		return eachMember(r, path, func(method string) error {
			if method != "put" {
				_, _, err := r.Skip()
				return err
			}
			return eachMember(r, method, d.addStatus(r))
		})
	})
}

// addStatus returns a function that reads a member of the operation on a status subresource.
func (d *Document) addStatus(r *jsonread.Reader) func(name string) error {
	return func(name string) error {
		if name != "x-kubernetes-group-version-kind" {
			_, _, err := r.Skip()
			return err
		}
		value, err := r.Value()
		for _, gvk := range groupVersionKinds([]any{value}) {
			d.statuses[gvk] = true
		}
		return err
	}
}

// definedKind returns the kind of a definition's version.
func definedKind(gvk schema.GroupVersionKind, version map[string]any, raw []byte) *kindInfo {
	subresources, _ := version["subresources"].(map[string]any)
	scale, _ := subresources["scale"].(map[string]any)
	return &kindInfo{
		raw: raw, isCustom: true, ignoresStatus: subresources["status"] != nil, deprecation: versionDeprecation(gvk, version),
		replicas: parseField(text(scale["specReplicasPath"])),
	}
}

// scale validates the number of replicas.
func (v *validator) scale(obj map[string]any, path []any) {
	var value any = obj
	for _, step := range path {
		name, _ := step.(string)
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	if n, isNumber := toNumber(value); isNumber && (n.float < 0 || n.float > math.MaxInt32) {
		v.addAt(path, Problem{Keyword: "scale", Message: fmt.Sprintf("is %v, the scale subresource says at least 0 and at most %d", value, math.MaxInt32)})
	}
}

// versionDeprecation returns the text of a definition about a deprecated version, or "".
func versionDeprecation(gvk schema.GroupVersionKind, version map[string]any) string {
	if version["deprecated"] != true {
		return ""
	}
	if warning := text(version["deprecationWarning"]); warning != "" {
		return sanitize.Text(warning, maxError)
	}
	return fmt.Sprintf("%s is deprecated", kindText(gvk))
}
