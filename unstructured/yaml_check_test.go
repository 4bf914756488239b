package unstructured

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.yaml.in/yaml/v3"
)

func TestYAMLChecker_LimitsAliasesNotText(t *testing.T) {
	scalar := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
	mapping := func(content ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: content} }
	long := scalar(strings.Repeat("x", maxAliased))
	assert.NoError(t, new(yamlChecker).check(mapping(scalar("a"), mapping(scalar("b"), long, scalar("c"), long))))

	long.Anchor = "long"
	alias := &yaml.Node{Kind: yaml.AliasNode, Alias: long}
	assert.NoError(t, new(yamlChecker).check(mapping(scalar("a"), long, scalar("b"), alias)), "the text itself is not added")
	assert.ErrorContains(t, new(yamlChecker).check(mapping(scalar("a"), long, scalar("b"), alias, scalar("c"), alias)), "aliases add more than 10 MiB")
}
