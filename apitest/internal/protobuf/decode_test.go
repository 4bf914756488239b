package protobuf_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/anykind/anykind/apitest/internal/limits"
	"github.com/anykind/anykind/apitest/internal/protobuf"
	"github.com/anykind/anykind/internal/testing/race"
)

// Parts of messages by hand: the tests of this module do not have the Go types. The module peers sends those of client-go.

func lengthDelimited(number int, content ...[]byte) []byte {
	var all []byte
	for _, part := range content {
		all = append(all, part...)
	}
	return append(header(number, len(all)), all...)
}

func header(number, size int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(size))
}

func text(number int, value string) []byte { return lengthDelimited(number, []byte(value)) }

func varint(number int, value int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), uint64(value))
}

func body(apiVersion, kind string, raw ...[]byte) []byte {
	unknown := append(lengthDelimited(1, text(1, apiVersion), text(2, kind)), lengthDelimited(2, raw...)...)
	return append([]byte("k8s\x00"), unknown...)
}

func TestDecode_FormsOfFields(t *testing.T) {
	metadata := lengthDelimited(1, text(1, "web"),
		lengthDelimited(8, varint(1, 946684800)),                            // creationTimestamp
		lengthDelimited(11, text(1, "app"), text(2, "shop")),                // labels
		lengthDelimited(11, text(1, "empty")), text(14, "a"), text(14, "b")) // finalizers
	tests := []struct {
		name string
		body []byte
		want map[string]any
	}{
		{"map, list, time", body("v1", "Namespace", metadata), map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
				"name": "web", "creationTimestamp": "2000-01-01T00:00:00Z", "labels": map[string]any{"app": "shop", "empty": ""},
				"finalizers": []any{"a", "b"},
			},
		}},
		{"negative integer, quantity, port, embedded struct", body("v1", "Pod", lengthDelimited(2,
			lengthDelimited(1, text(1, "data"), lengthDelimited(2, lengthDelimited(2, text(1, ""), lengthDelimited(2, text(1, "1Gi"))))),
			varint(25, -5),
			lengthDelimited(2, text(1, "app"), lengthDelimited(10, lengthDelimited(1, lengthDelimited(2, lengthDelimited(2, varint(1, 1), text(3, "http")))))),
		)), map[string]any{
			"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
				"volumes":    []any{map[string]any{"name": "data", "emptyDir": map[string]any{"medium": "", "sizeLimit": "1Gi"}}},
				"priority":   int64(-5),
				"containers": []any{map[string]any{"name": "app", "livenessProbe": map[string]any{"httpGet": map[string]any{"port": "http"}}}},
			},
		}},
		{"bytes", body("v1", "Secret", lengthDelimited(2, text(1, "key"), text(2, "abc"))), map[string]any{
			"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"key": "YWJj"},
		}},
		{"unknown field", body("v1", "Secret", text(99, "x")), map[string]any{"apiVersion": "v1", "kind": "Secret"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := protobuf.Decode(test.body)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestDecode_BrokenBodies(t *testing.T) {
	whole := body("v1", "Secret", lengthDelimited(2, text(1, "key"), text(2, "abc")))
	for i := range whole {
		if _, err := protobuf.Decode(whole[:i]); i < 5 {
			assert.Error(t, err)
		}
	}
	_, err := protobuf.Decode([]byte("{}"))
	require.ErrorContains(t, err, "does not appear to be a protobuf message")
	_, err = protobuf.Decode(body("v9", "Secret"))
	require.ErrorContains(t, err, `no kind "Secret" is registered`)
}

// nested returns a JSONSchemaProps with its field "not" nested so many times.
func nested(depth int) []byte {
	sizes := make([]int, depth) // innermost first
	for i := 1; i < depth; i++ {
		sizes[i] = len(header(28, sizes[i-1])) + sizes[i-1]
	}
	var schema []byte
	for _, size := range slices.Backward(sizes) {
		schema = append(schema, header(28, size)...)
	}
	return schema
}

// definition returns a CustomResourceDefinition of about as many bytes as a body may have, with a part in it again and again.
func definition(part []byte) []byte {
	required := lengthDelimited(25, part) // allOf
	schema := bytes.Repeat(required, (limits.MaxBody-100)/len(required))
	version := lengthDelimited(7, text(1, "v1"), lengthDelimited(4, lengthDelimited(1, schema)))
	return body("apiextensions.k8s.io/v1", "CustomResourceDefinition", lengthDelimited(2, version))
}

func TestDecode_MemoryIsBounded(t *testing.T) {
	race.Skip(t)
	variable := lengthDelimited(7, lengthDelimited(3, lengthDelimited(4))) // env: [{valueFrom: {secretKeyRef: {}}}]
	container := lengthDelimited(2, bytes.Repeat(variable, 1000))
	tests := []struct {
		name     string
		body     []byte
		tooLarge bool
	}{
		{"nested messages", definition(nested(60)), true},
		{"nested messages of one byte each", body("v1", "Pod", lengthDelimited(2, bytes.Repeat(container, (limits.MaxBody-100)/len(container)))), true},
		{"JSON", definition(lengthDelimited(8, lengthDelimited(1, []byte(`{"":{"":{"":{"":{}}}}}`)))), false}, // default
		{"empty containers", body("v1", "Pod", lengthDelimited(2, bytes.Repeat(lengthDelimited(2), 1<<20))), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.LessOrEqual(t, len(test.body), limits.MaxBody)
			_, _ = protobuf.Decode(body("v1", "Secret")) // reads the table
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			obj, err := protobuf.Decode(test.body)
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes decode to %d MiB, with garbage", len(test.body), (after.TotalAlloc-before.TotalAlloc)>>20)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*limits.MaxDecoded))
			if test.tooLarge {
				require.ErrorIs(t, err, protobuf.ErrTooLarge)
				return
			}
			require.NoError(t, err)
			assert.NotEmpty(t, obj["spec"])
		})
	}
}

func TestDecode_DepthIsBounded(t *testing.T) {
	schema := lengthDelimited(7, lengthDelimited(4, lengthDelimited(1, nested(20_000))))
	_, err := protobuf.Decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", lengthDelimited(2, schema)))
	require.ErrorContains(t, err, "exceeded max depth")
}

func FuzzDecode(f *testing.F) {
	f.Add(body("v1", "Pod", lengthDelimited(2, text(1, "x"))))
	f.Add(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", lengthDelimited(2, text(1, "x"))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if obj, err := protobuf.Decode(data); err == nil && obj["kind"] == nil {
			t.Error("an object without a kind")
		}
	})
}
