package unstructured

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	unstructuredv1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// oddFrames are streams that no Kubernetes server sends.
var oddFrames = map[string]string{
	"empty":              "",
	"space":              " \r\n\t",
	"no newlines":        `{"type":"ADDED","object":{"kind":"A"}}{"type":"DELETED","object":{"kind":"A"}}`,
	"many newlines":      "\n\n{\"type\":\"ADDED\",\"object\":{\"kind\":\"A\"}}\n\r\n ",
	"object first":       `{"object":{"kind":"A"},"type":"ADDED"}`,
	"other fields":       `{"a":[{}],"type":"ADDED","object":{"kind":"A"},"z":1.5}`,
	"type twice":         `{"type":1,"type":"ADDED","object":{"kind":"A"}}`,
	"object twice":       `{"type":"ADDED","object":1,"object":{"kind":"A"}}`,
	"other case":         `{"Type":"ADDED","object":{"kind":"A"}}`,
	"unknown type":       `{"type":"RENAMED","object":{"kind":"A"}}`,
	"lower case type":    `{"type":"added","object":{"kind":"A"}}`,
	"empty type":         `{"type":"","object":{"kind":"A"}}`,
	"number for a type":  `{"type":1,"object":{"kind":"A"}}`,
	"no type":            `{"object":{"kind":"A"}}`,
	"no object":          `{"type":"ADDED"}`,
	"null object":        `{"type":"ADDED","object":null}`,
	"list for an object": `{"type":"ADDED","object":[]}`,
	"no kind":            `{"type":"ADDED","object":{"apiVersion":"v1"}}`,
	"bad apiVersion":     `{"type":"ADDED","object":{"kind":"A","apiVersion":"a/b/c"}}`,
	"empty frame":        `{}`,
	"null frame":         `null`,
	"list":               `[{"type":"ADDED","object":{"kind":"A"}}]`,
	"comma between":      `{"type":"ADDED","object":{"kind":"A"}},{"type":"ADDED","object":{"kind":"A"}}`,
	"cut":                `{"type":"ADDED","object":{"kind":"A"}}` + "\n" + `{"type":"ADDED","object":{"ki`,
	"text behind":        `{"type":"ADDED","object":{"kind":"A"}} x`,
}

// readEvents reads to the error, which is io.EOF if all is well.
func readEvents(d *WatchDecoder) ([]WatchEvent[Object], error) {
	events := []WatchEvent[Object]{}
	for {
		event, err := d.Next()
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}

// assertWatchParity checks events and the error behind them against what apimachinery's decoders make of data.
func assertWatchParity(t testing.TB, data []byte, events []WatchEvent[Object], err error) {
	t.Helper()
	frames := json.NewDecoder(bytes.NewReader(data))
	for i := 0; ; i++ {
		want, wantErr := referenceEvent(frames)
		if wantErr != nil {
			require.Len(t, events, i, "apimachinery: %v", wantErr)
			assert.Equal(t, wantErr == io.EOF, err == io.EOF, "apimachinery: %v, this package: %v", wantErr, err)
			return
		}
		require.Greater(t, len(events), i, "this package: %v", err)
		assert.Equal(t, want.Type, events[i].Type)
		assertIdentical(t, want.Object.Object, events[i].Object.Object)
	}
}

func referenceEvent(frames *json.Decoder) (WatchEvent[Object], error) {
	var data json.RawMessage
	if err := frames.Decode(&data); err != nil {
		return WatchEvent[Object]{}, err
	}
	var frame map[string]any
	if err := utiljson.Unmarshal(data, &frame); err != nil {
		return WatchEvent[Object]{}, err
	}
	typ, _ := frame["type"].(string)
	if !slices.Contains([]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"}, typ) {
		return WatchEvent[Object]{}, errors.New("unknown type")
	}
	object, _ := frame["object"].(map[string]any)
	obj := &unstructuredv1.Unstructured{Object: object}
	if obj.GroupVersionKind().Kind == "" {
		return WatchEvent[Object]{}, errors.New("missing kind")
	}
	return WatchEvent[Object]{Type: watch.EventType(typ), Object: obj}, nil
}

func TestWatchDecoder_EqualsApimachinery(t *testing.T) {
	data := sample(t, "watch.json")
	events, err := readEvents(NewWatchDecoder(bytes.NewReader(data)))
	require.Equal(t, io.EOF, err)
	assert.Len(t, events, 5)
	assertWatchParity(t, data, events, err)
}

func TestWatchDecoder_OddFrames(t *testing.T) {
	for name, frames := range oddFrames {
		t.Run(name, func(t *testing.T) {
			events, err := readEvents(NewWatchDecoder(strings.NewReader(frames)))
			assertWatchParity(t, []byte(frames), events, err)
		})
	}
}

func TestWatchDecoder_NastyObjects(t *testing.T) {
	for name, value := range nastyValues {
		t.Run(name, func(t *testing.T) {
			data := []byte(`{"type":"ADDED","object":` + string(inObject(value)) + "}\n{}")
			events, err := readEvents(NewWatchDecoder(bytes.NewReader(data)))
			assertWatchParity(t, data, events, err)
		})
	}
}
