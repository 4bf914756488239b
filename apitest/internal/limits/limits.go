// Package limits bounds the memory of decoded request bodies. The API server bounds only the bytes of a body.
package limits

import (
	"bytes"
	"errors"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxBody is the API server's limit of a body's bytes.
	MaxBody = 3 << 20
	// MaxDecoded limits the estimated memory of a decoded Protobuf body. JSON needs no such limit: MaxBody of it decodes to 200 MiB in
	// the worst case.
	MaxDecoded = 100 * MaxBody

	maxAliasedText = 10 * MaxBody
)

var errAliases = errors.New("yaml: document contains excessive aliasing")

// CheckAliases returns an error if replacing the aliases in YAML yields more text than ten of the largest bodies. The YAML decoder has
// the same error, but bounds only the number of values: 1,000 aliases of 1 MiB of text become 1 GiB of JSON.
func CheckAliases(data []byte) error {
	if !bytes.Contains(data, []byte("&")) || !bytes.Contains(data, []byte("*")) {
		return nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return err
	}
	if textSize(&document, map[*yaml.Node]int{}) > maxAliasedText {
		return errAliases
	}
	return nil
}

// textSize returns the bytes of a node's scalars with its aliases replaced, or a number above maxAliasedText. A node within itself
// counts as 0: the decoder rejects it.
func textSize(n *yaml.Node, anchors map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, found := anchors[n]; found {
		return size
	}
	if n.Anchor != "" {
		anchors[n] = 0
	}
	size := len(n.Value)
	for _, child := range n.Content {
		if size += textSize(child, anchors); size > maxAliasedText {
			break
		}
	}
	if n.Anchor != "" {
		anchors[n] = size
	}
	return size
}
