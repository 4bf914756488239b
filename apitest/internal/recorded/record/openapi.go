package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anykind/anykind/apitest/internal/nested"
	"github.com/anykind/anykind/apitest/internal/recorded"
)

// openapiRecorder collects the content of openapi.zip; see package recorded.
type openapiRecorder struct {
	definitions map[string]string // JSON by name
	documents   map[string]any    // by path, with the placeholder
	overrides   map[string]map[string]string
	index       recorded.Index
}

func recordOpenAPI(ctx context.Context, api *server) error {
	r := &openapiRecorder{
		definitions: map[string]string{}, documents: map[string]any{}, overrides: map[string]map[string]string{},
		index: recorded.Index{Hashes: map[string]string{}, Kinds: map[string]string{}, Extra: map[string][]string{}},
	}
	paths, err := readV3Paths(ctx, api)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		document, err := api.getDocument(ctx, paths[path])
		if err != nil {
			return err
		}
		parsed, err := url.Parse(paths[path])
		if err != nil {
			return err
		}
		r.index.Hashes[path] = parsed.Query().Get("hash")
		if err := r.addV3("v3/"+path, document); err != nil {
			return err
		}
	}
	v2, err := api.getDocument(ctx, "/openapi/v2")
	if err != nil {
		return err
	}
	if err := r.addV2("v2", v2); err != nil {
		return err
	}
	if err := r.addTemplates(ctx, api); err != nil {
		return err
	}
	return r.write()
}

func readV3Paths(ctx context.Context, api *server) (map[string]string, error) {
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := api.get(ctx, "/openapi/v3", "", &index); err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for path, entry := range index.Paths {
		paths[path] = entry.ServerRelativeURL
	}
	return paths, nil
}

// getDocument decodes a document with numbers as json.Number.
func (s *server) getDocument(ctx context.Context, path string) (map[string]any, error) {
	text, err := s.getText(ctx, path, "")
	if err != nil {
		return nil, err
	}
	document, err := decodeJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	return document, nil
}

func decodeJSON(text io.Reader) (document map[string]any, err error) {
	decoder := json.NewDecoder(text)
	decoder.UseNumber()
	err = decoder.Decode(&document)
	return document, err
}

func (r *openapiRecorder) addV3(path string, document map[string]any) error {
	schemas := nested.Map(document, "components", "schemas")
	for name, schema := range schemas {
		if err := r.addDefinition(path, name, schema); err != nil {
			return err
		}
	}
	return r.addDocument(path, document, schemas)
}

// addDocument records a v3 document with a placeholder for its schemas, and the names of schemas that it does not refer to.
func (r *openapiRecorder) addDocument(path string, document, schemas map[string]any) error {
	if schemas != nil {
		nested.Map(document, "components")["schemas"] = placeholder()
	}
	r.documents[path] = document
	text, err := compactJSON(document)
	if err != nil {
		return err
	}
	r.index.Extra[path] = r.unreachable(path, text, slices.Sorted(maps.Keys(schemas)))
	return nil
}

// addV2 records the OpenAPI v2 definitions that differ from ToV2 of the v3 definitions.
func (r *openapiRecorder) addV2(path string, document map[string]any) error {
	definitions := nested.Map(document, "definitions")
	for name, definition := range definitions {
		text, err := compactJSON(definition)
		if err != nil {
			return err
		}
		v3, known := r.definitions[name]
		derived := ""
		if known {
			if derived, err = recorded.ToV2(v3); err != nil {
				return err
			}
		}
		if derived != text {
			r.override(path, name, text)
		}
	}
	for name := range r.definitions {
		if _, has := definitions[name]; !has {
			return fmt.Errorf("OpenAPI v2 has no definition %s", name)
		}
	}
	document["definitions"] = placeholder()
	r.documents[path] = document
	return nil
}

func (r *openapiRecorder) addDefinition(path, name string, schema any) error {
	text, err := compactJSON(schema)
	if err != nil {
		return err
	}
	if known, seen := r.definitions[name]; seen && known != text {
		r.override(path, name, text)
		return nil
	}
	r.definitions[name] = text
	object, _ := schema.(map[string]any)
	kinds := nested.Slice(object, "x-kubernetes-group-version-kind")
	if len(kinds) != 1 {
		return nil // without a kind, or with many: DeleteOptions and WatchEvent
	}
	kind, _ := kinds[0].(map[string]any)
	r.index.Kinds[fmt.Sprintf("%s/%s/%s", kind["group"], kind["version"], kind["kind"])] = name
	return nil
}

func (r *openapiRecorder) override(path, name, text string) {
	if r.overrides[path] == nil {
		r.overrides[path] = map[string]string{}
	}
	r.overrides[path][name] = text
}

// unreachable returns the definitions not referenced in the document.
func (r *openapiRecorder) unreachable(path, text string, names []string) []string {
	reached := map[string]bool{}
	queue := recorded.References(text, recorded.ReferenceV3)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if reached[name] {
			continue
		}
		reached[name] = true
		definition, overridden := r.overrides[path][name]
		if !overridden {
			definition = r.definitions[name]
		}
		queue = append(queue, recorded.References(definition, recorded.ReferenceV3)...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return reached[name] })
}

func (r *openapiRecorder) write() error {
	var buf bytes.Buffer
	archive := zip.NewWriter(&buf)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	files, err := r.files()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		writer, err := archive.Create(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(writer, files[name]); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "openapi.zip"), buf.Bytes(), 0o644)
}

func (r *openapiRecorder) files() (map[string]string, error) {
	files := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.definitions)) {
		files["definitions/"+name[:strings.LastIndexByte(name, '.')]] += name + "\t" + r.definitions[name] + "\n"
	}
	pooled := maps.Clone(r.documents)
	for path, definitions := range r.overrides {
		for name, text := range definitions {
			document, err := decodeJSON(strings.NewReader(text))
			if err != nil {
				return nil, err
			}
			pooled[path+"\t"+name] = document
		}
	}
	pool := newPool(pooled)
	for _, path := range slices.Sorted(maps.Keys(pooled)) {
		text, err := compactJSON(pool.replace(pooled[path], true))
		if err != nil {
			return nil, err
		}
		if path, name, isOverride := strings.Cut(path, "\t"); isOverride {
			files["overrides/"+path] += name + "\t" + text + "\n"
		} else {
			files["documents/"+path] = text
		}
	}
	files["pool"] = strings.Join(pool.values, "\n") + "\n"
	for path, names := range r.index.Extra {
		if len(names) == 0 {
			delete(r.index.Extra, path)
		}
	}
	index, err := compactJSON(r.index)
	files["index.json"] = index
	return files, err
}

func compactJSON(value any) (string, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buf.String(), "\n"), nil
}

func placeholder() any { return strings.Trim(recorded.DefinitionsPlaceholder, `"`) }
