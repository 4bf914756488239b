package unstructured

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// EncodeYAML writes objs as YAML, one document each with --- between them, fields sorted as sigs.k8s.io/yaml and so
// kubectl sort them. What [YAMLDecoder] makes of it is what [Decode] makes of what [Encode] writes, from which it
// differs in form only: it takes the same objects and has the same errors, in front of which it names the object by
// its index, counted from 0. Without objs it is empty. Safe for concurrent use while nobody changes objs.
func EncodeYAML(objs ...*Object) ([]byte, error) {
	var out []byte
	for i, obj := range objs {
		data, err := Encode(obj)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i, err)
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, yamlOf(data)...)
	}
	return out, nil
}

// yamlOf is an object's JSON as YAML. Where that would not be read back, it is still JSON, which is YAML, too.
func yamlOf(data []byte) []byte {
	isMerge := bytes.Contains(data, []byte(`"<<":`)) // it would stand without quotes, and mean that a map is merged
	text, err := yaml.JSONToYAML(escaped(data))
	if err != nil || isMerge { // YAML has limits that JSON has not, such as 1024 characters for a name
		return append(data, '\n')
	}
	return text
}

// escaped is JSON in which everything is escaped that YAML does not read as JSON does: control characters, line ends,
// byte order marks.
func escaped(data []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(data); {
		c, size := rune(data[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(data[i:])
		}
		if 0x7f <= c && c <= 0x9f || c == '\u2028' || c == '\u2029' || c == '\ufeff' || c == '\ufffe' || c == '\uffff' {
			out = fmt.Appendf(append(out, data[done:i]...), `\u%04x`, c)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}
