package unstructured

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/jsonread"
)

// yamlChecker rejects documents with duplicate fields or excessive expansion.
type yamlChecker struct {
	line  int                       // of the current node
	known map[*yaml.Node]yamlExtent // of measured nodes with anchors
}

// yamlExtent is the approximate size of a node, in bytes.
type yamlExtent struct {
	written, expanded int64 // as written, and with expanded aliases
	depth             int
}

// maxAliased limits the bytes added to a document by aliases. A Kubernetes server accepts requests of 3 MiB.
const maxAliased = 10 << 20

func (t *yamlChecker) check(root *yaml.Node) error {
	t.known = map[*yaml.Node]yamlExtent{}
	switch root.Kind {
	case yaml.MappingNode:
	case yaml.SequenceNode:
		return errors.New("is a list, not an object")
	default:
		return errors.New("is a single value, not an object")
	}
	extent, err := t.measure(root)
	if err != nil {
		return err
	}
	if extent.depth > jsonread.MaxDepth {
		t.line = root.Line
		return fmt.Errorf("nested deeper than %d", jsonread.MaxDepth)
	}
	return nil
}

// measure checks a node and its descendants. The target of an alias is checked once.
func (t *yamlChecker) measure(n *yaml.Node) (yamlExtent, error) {
	t.line = n.Line
	e := yamlExtent{written: 16 + int64(len(n.Value))}
	e.expanded = e.written
	if n.Kind == yaml.AliasNode {
		target, found := t.known[n.Alias]
		if !found {
			return e, errors.New("an alias contains itself")
		}
		e.expanded = target.expanded
		e.depth = target.depth
		return e, nil
	}
	if n.Kind == yaml.MappingNode {
		if err := t.names(n); err != nil {
			return e, err
		}
	}
	for _, child := range n.Content {
		part, err := t.measure(child)
		if err != nil {
			return e, err
		}
		e.written += part.written
		e.expanded += part.expanded
		e.depth = max(e.depth, part.depth)
		if e.expanded-e.written > maxAliased {
			t.line = child.Line
			return e, fmt.Errorf("aliases add more than %d MiB to the document", maxAliased>>20)
		}
	}
	if n.Kind != yaml.ScalarNode {
		e.depth++
	}
	if n.Anchor != "" {
		t.known[n] = e
	}
	return e, nil
}

// names rejects invalid and duplicate field names. Names are compared in their JSON form: 1 and "1" are equal.
func (t *yamlChecker) names(mapping *yaml.Node) error {
	seen := make(map[string]bool, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		n := mapping.Content[i]
		t.line = n.Line
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		isTagged := n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!!str"
		switch {
		case n.Kind != yaml.ScalarNode:
			return errors.New("a field's name is a list or a map")
		case n.ShortTag() == "!!null" || isTagged:
			return errors.New("a field's name is null or has a tag: put it in quotes")
		}
		name := fieldName(n)
		if seen[name] {
			return fmt.Errorf("the field %q is there twice", name)
		}
		seen[name] = true
	}
	return nil
}

// notText matches at least all texts that YAML 1.1 may read as a number, bool or null.
var notText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+.0-9~]|^(?i:y|n|yes|no|on|off|true|false|null)$`)
})

// fieldName returns the JSON name of a key.
func fieldName(key *yaml.Node) string {
	if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 || !notText().MatchString(key.Value) {
		return key.Value
	}
	var m map[string]int
	if err := ky.Unmarshal([]byte(strings.ReplaceAll(key.Value, "\n", " ")+": 0"), &m); err == nil && len(m) == 1 {
		return slices.Collect(maps.Keys(m))[0]
	}
	return key.Value
}

// lineNotJSON returns the line of the first value without a JSON form, or 0.
func lineNotJSON(n *yaml.Node) int {
	notNumber := slices.Contains([]string{".inf", ".nan"}, strings.ToLower(strings.TrimLeft(n.Value, "-+")))
	if n.Kind == yaml.ScalarNode && (n.Style == 0 && notNumber || n.Style&yaml.TaggedStyle != 0) {
		return n.Line
	}
	for _, child := range n.Content {
		if line := lineNotJSON(child); line > 0 {
			return line
		}
	}
	return 0
}

// duplicateField returns the first duplicate field name in a valid JSON value. It stops reading there.
func duplicateField(r *jsonread.Reader) (name string, found bool) {
	switch c, _ := r.Peek(); c {
	case '{':
		seen := map[string]bool{}
		for name, more, err := r.OpenObject(); more && err == nil; name, more, err = r.NextMember() {
			if seen[name] {
				return name, true
			}
			seen[name] = true
			if inner, found := duplicateField(r); found {
				return inner, true
			}
		}
	case '[':
		for more, err := r.OpenList(); more && err == nil; more, err = r.NextElement() {
			if name, found := duplicateField(r); found {
				return name, true
			}
		}
	default:
		_, _ = r.Value()
	}
	return "", false
}
