package protobuf

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/limits"
	"github.com/anykind/anykind/internal/testing/race"
)

// definition returns a CustomResourceDefinition with fields of its schema.
func definition(fields ...[]byte) []byte {
	schema := delimitedField(4, delimitedField(1, fields...))
	return delimitedField(2, delimitedField(7, textField(1, "v1"), schema))
}

// negated returns a schema with its field "not" nested so many times.
func negated(depth int) []byte {
	schema := []byte{}
	for range depth {
		schema = delimitedField(28, schema)
	}
	return schema
}

func TestDecoder_MemoryIsBounded(t *testing.T) {
	race.Skip(t)
	const limit = 8 << 20
	crd := metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
	pod := metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	variable := delimitedField(7, delimitedField(3, delimitedField(4))) // env: [{valueFrom: {secretKeyRef: {}}}]
	deeplyJSON := append(bytes.Repeat([]byte(`{"":`), 9000), append([]byte("1"), bytes.Repeat([]byte("}"), 9000)...)...)
	for _, c := range []struct {
		name     string
		typeMeta metav1.TypeMeta
		raw      []byte
		want     error
	}{
		{"nested messages", crd, definition(bytes.Repeat(delimitedField(25, negated(60)), 1000)), errExceeded},
		{"short messages", pod, delimitedField(2, bytes.Repeat(delimitedField(2, bytes.Repeat(variable, 100)), 1000)), errExceeded},
		{"empty items", pod, delimitedField(2, bytes.Repeat(delimitedField(2), 100_000)), errExceeded},
		{"JSON", crd, definition(bytes.Repeat(delimitedField(25, delimitedField(8, delimitedField(1, deeplyJSON))), 10)), errExceeded},
		{"a long message", pod, make([]byte, limits.JSON(limit)+1), errExceeded},
		{"deep messages", crd, definition(negated(20_000)), errDepth},
		{"a small pod", pod, delimitedField(2, delimitedField(2)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			message, found := Lookup(schema.FromAPIVersionAndKind(c.typeMeta.APIVersion, c.typeMeta.Kind))
			require.True(t, found)
			memory := int64(limit)
			if errors.Is(c.want, errDepth) {
				memory = limits.DefaultObject
			}
			d := NewDecoder(memory, errExceeded)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := d.Object(message, c.raw, c.typeMeta)
			runtime.ReadMemStats(&after)
			require.Equal(t, c.want, err)
			assert.Equal(t, c.want, d.Check(message, c.raw, c.typeMeta))
			if errors.Is(c.want, errExceeded) {
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*limit), "with garbage")
			}
		})
	}
}
