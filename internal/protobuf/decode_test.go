package protobuf

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/jsonread"
	"github.com/anykind/anykind/internal/limits"
)

// sample is an object of testdata, encoded by generated code.
type sample struct {
	typeMeta metav1.TypeMeta
	message  *Message
	body     []byte
	raw      []byte
	json     []byte
}

func readSample(t testing.TB, name string) sample {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".pb"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	typeMeta, raw, err := Envelope(body)
	require.NoError(t, err)
	message, found := Lookup(schema.FromAPIVersionAndKind(typeMeta.APIVersion, typeMeta.Kind))
	require.True(t, found, "%s", typeMeta.Kind)
	return sample{typeMeta, message, body, raw, text}
}

func samples(t testing.TB) map[string]sample {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.pb")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]sample{}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".pb")
		all[name] = readSample(t, name)
	}
	return all
}

func decodeJSON(t testing.TB, text []byte) map[string]any {
	t.Helper()
	r := jsonread.Borrow(text)
	defer r.Release()
	obj, err := r.Object()
	require.NoError(t, err)
	return obj
}

func TestDecoder_ObjectEqualsJSON(t *testing.T) {
	d := NewDecoder(limits.DefaultObject, errExceeded)
	for name, sample := range samples(t) {
		t.Run(name, func(t *testing.T) {
			want := decodeJSON(t, sample.json)
			require.NoError(t, d.Check(sample.message, sample.raw, sample.typeMeta))
			checked := d.Memory()
			got, err := d.Object(sample.message, sample.raw, sample.typeMeta)
			require.NoError(t, err)
			assert.Equal(t, want, got)
			assert.Equal(t, checked, d.Memory(), "memory")
			text, err := sample.message.AppendJSON(nil, sample.raw, sample.typeMeta)
			require.NoError(t, err)
			assert.True(t, json.Valid(text))
			assert.Equal(t, want, decodeJSON(t, text))
		})
	}
}

func TestDecoder_ReleaseForgetsScalars(t *testing.T) {
	d := Borrow(limits.DefaultObject, errExceeded)
	d.begin(nil)
	for _, text := range []string{"hidden", "a"} {
		_, err := d.value(&field{form: 'I'}, 0, append([]byte{1 << 3, 1}, textField(3, text)...))
		require.NoError(t, err)
	}
	d.Release()
	assert.NotContains(t, string(d.text[:cap(d.text)]), "dden")
}

func TestTable_AllMessagesParse(t *testing.T) {
	table := loadTable()
	assert.Greater(t, len(table.kinds), 150)
	for i := range table.messages {
		m := table.messages[i].parsed()
		assert.NotEmpty(t, m.name)
	}
	_, found := Lookup(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	assert.False(t, found)
}

func TestDecoder_FieldZeroIsUnknown(t *testing.T) {
	d := NewDecoder(limits.DefaultObject, errExceeded)
	for i := range loadTable().messages { // some have no fields
		m := &loadTable().messages[i]
		_, err := d.Object(m, []byte{0}, metav1.TypeMeta{})
		var unknown *UnknownFieldError
		require.ErrorAs(t, err, &unknown, m.name)
		assert.Equal(t, err, d.Check(m, []byte{0}, metav1.TypeMeta{}), m.name)
	}
}

func TestAppendQuantity_EqualsJSON(t *testing.T) {
	for _, digits := range []string{"0", "007", "1", "999", "1000", "1001", "1024", "1025", "8388607", "8388609", "8796093022207", "8796093022209", "1000000000000", "999999999999999"} {
		for _, suffix := range []string{"", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "e3"} {
			quantity, err := resource.ParseQuantity(digits + suffix)
			require.NoError(t, err)
			want, err := json.Marshal(quantity)
			require.NoError(t, err)
			got, err := appendQuantity(nil, []byte(digits+suffix), true)
			require.NoError(t, err)
			assert.Equal(t, string(want), `"`+string(got)+`"`, digits+suffix)
		}
	}
}
