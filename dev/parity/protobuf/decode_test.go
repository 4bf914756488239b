// Package protobuf_test compares decoded Protobuf with the generated code of k8s.io/api, which the API server uses.
package protobuf_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/anykind/anykind/dev/parity/protobuf/table"
	"github.com/anykind/anykind/internal/testing/protobufform"
)

// objectsPerKind returns the number of random objects of each kind. ANYKIND_PROTOBUF_OBJECTS changes it.
func objectsPerKind(t *testing.T) int {
	t.Helper()
	text := os.Getenv("ANYKIND_PROTOBUF_OBJECTS")
	if text == "" {
		return 100
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

// fromServer returns the decoded JSON of the object that the generated code decodes from raw.
func fromServer(k kind, raw []byte) (map[string]any, error) {
	obj := k.new()
	obj.Reset()
	if err := obj.Unmarshal(raw); err != nil {
		return nil, err
	}
	asServed(obj)
	setKind(obj, k.GroupVersionKind)
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var want map[string]any
	return want, kjson.Unmarshal(text, &want)
}

func TestDecode_EqualsJSON(t *testing.T) {
	count := objectsPerKind(t)
	for i, k := range kinds(t) {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			decoder, err := protobufform.New(k.GroupVersionKind)
			require.NoError(t, err)
			filler := randomObjects(int64(i))
			compared := 0
			for range count {
				obj := k.new()
				filler.Fill(obj)
				raw, err := obj.Marshal()
				require.NoError(t, err)
				want, err := fromServer(k, raw)
				if err != nil {
					continue // the server could not send it as JSON
				}
				compared++
				got, err := decoder.Decode(raw)
				require.NoError(t, err)
				require.Empty(t, difference("", want, any(got.Object)))
				var fromJSON map[string]any
				require.NoError(t, kjson.Unmarshal(got.JSON, &fromJSON), "%s", got.JSON)
				require.Empty(t, difference("", want, fromJSON), "as JSON")
			}
			require.Greater(t, compared, count/2)
		})
	}
}

func TestTable_IsUpToDate(t *testing.T) {
	want, err := table.Text()
	require.NoError(t, err)
	compressed, err := os.Open("../../../internal/protobuf/messages.txt.gz")
	require.NoError(t, err)
	defer compressed.Close()
	reader, err := gzip.NewReader(compressed)
	require.NoError(t, err)
	got, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "make protobuf-record")
}
