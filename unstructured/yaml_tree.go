package unstructured

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	ky "sigs.k8s.io/yaml"
)

// yamlTree checks a document before it is read: what reading would lose, and what it would blow up.
type yamlTree struct {
	line  int                       // of what is being looked at
	known map[*yaml.Node]yamlExtent // of nodes with anchors; open while being measured
}

// A yamlExtent is how much a node is, in bytes more or less.
type yamlExtent struct {
	written, expanded int64 // as it stands there, and with what its aliases stand for
	depth             int
	isOpen            bool
}

// maxAliased is how much aliases may add to a document. A Kubernetes server takes requests of 3 MiB.
const maxAliased = 10 << 20

func (t *yamlTree) check(root *yaml.Node) error {
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
	if extent.depth > maxDepth {
		t.line = root.Line
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	return nil
}

// measure checks a node and all below it, and what its aliases stand for once.
func (t *yamlTree) measure(n *yaml.Node) (yamlExtent, error) {
	t.line = n.Line
	e := yamlExtent{written: 16 + int64(len(n.Value)), isOpen: true}
	e.expanded = e.written
	if n.Kind == yaml.AliasNode {
		return t.alias(n, e)
	}
	if n.Anchor != "" {
		t.known[n] = e
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
	e.isOpen = false
	if n.Anchor != "" {
		t.known[n] = e
	}
	return e, nil
}

func (t *yamlTree) alias(n *yaml.Node, e yamlExtent) (yamlExtent, error) {
	target, found := t.known[n.Alias]
	if !found || target.isOpen {
		return e, errors.New("an alias stands for what it is in")
	}
	e.expanded, e.depth = target.expanded, target.depth
	return e, nil
}

// names refuses what cannot be the name of a field, and a name that comes twice. What two names are once they are
// JSON's matters: 1 and "1" are one.
func (t *yamlTree) names(mapping *yaml.Node) error {
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

// notText matches whatever YAML 1.1 may take for a number, bool or null, and more.
var notText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+.0-9~]|^(?i:y|n|yes|no|on|off|true|false|null)$`)
})

// fieldName is what a key becomes in JSON.
func fieldName(key *yaml.Node) string {
	if key.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 || !notText().MatchString(key.Value) {
		return key.Value
	}
	data, err := ky.YAMLToJSON([]byte(strings.ReplaceAll(key.Value, "\n", " ") + ": 0"))
	if err != nil {
		return key.Value
	}
	if m, _, err := readJSON(data); err == nil && len(m) == 1 {
		for name := range m {
			return name
		}
	}
	return key.Value
}

var notNumber = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?\.(?i:inf|nan)$`)
})

// lineNotJSON is the line of the first value in n that JSON cannot have, 0 if none is found.
func lineNotJSON(n *yaml.Node) int {
	if n.Kind == yaml.ScalarNode && (n.Style == 0 && notNumber().MatchString(n.Value) || n.Style&yaml.TaggedStyle != 0) {
		return n.Line
	}
	for _, child := range n.Content {
		if line := lineNotJSON(child); line > 0 {
			return line
		}
	}
	return 0
}
