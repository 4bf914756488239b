package recorded

import (
	"archive/zip"
	"bytes"
	_ "embed" // openapi.zip
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The archive openapi.zip has the server's OpenAPI documents, deduplicated:
//
//   - definitions/PACKAGE has the definitions of a Go package, a line each: name, tab, JSON.
//   - pool has a JSON value per line, referenced as {"&":LINE}. A value may reference earlier lines.
//   - documents/PATH is a document, such as documents/v3/apis/apps/v1, with "@definitions" for its definitions.
//   - overrides/PATH has the definitions specific to that document, in the form of definitions, with references to the pool.
//   - index.json is an Index.
//
// Documents are assembled as text. Only callers decode them.
const (
	definitionsDir = "definitions/"
	documentsDir   = "documents/"
	overridesDir   = "overrides/"
	poolName       = "pool"
	indexName      = "index.json"
)

// DefinitionsPlaceholder stands for the definitions of a document before they are inserted.
const DefinitionsPlaceholder = `"@definitions"`

// Prefixes of references to definitions in OpenAPI v3 and v2.
const (
	ReferenceV3 = "#/components/schemas/"
	ReferenceV2 = "#/definitions/"
)

//go:embed openapi.zip
var openapiZip []byte

// Index is the table of contents of the recorded OpenAPI documents.
type Index struct {
	Hashes map[string]string   `json:"hashes"` // by path of /openapi/v3, such as "apis/apps/v1"
	Kinds  map[string]string   `json:"kinds"`  // GROUP/VERSION/KIND to definition name
	Extra  map[string][]string `json:"extra"`  // unreferenced definitions of a document
}

// OpenAPI has the recorded OpenAPI documents. It is safe for concurrent use. Results are read-only.
type OpenAPI struct {
	Index
	files       map[string]*zip.File
	definitions map[string]func() (map[string]string, error) // by package
	pool        func() ([]string, error)
}

// ReadOpenAPI returns the recorded OpenAPI documents.
var ReadOpenAPI = sync.OnceValues(func() (*OpenAPI, error) {
	archive, err := zip.NewReader(bytes.NewReader(openapiZip), int64(len(openapiZip)))
	if err != nil {
		return nil, fmt.Errorf("read the recorded OpenAPI documents: %w", err)
	}
	o := &OpenAPI{files: map[string]*zip.File{}, definitions: map[string]func() (map[string]string, error){}}
	for _, file := range archive.File {
		o.files[file.Name] = file
		if name, ok := strings.CutPrefix(file.Name, definitionsDir); ok {
			o.definitions[name] = sync.OnceValues(func() (map[string]string, error) { return o.readDefinitions(definitionsDir + name) })
		}
	}
	o.pool = sync.OnceValues(o.readPool)
	text, err := o.read(indexName)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &o.Index); err != nil {
		return nil, fmt.Errorf("read the recorded OpenAPI documents: %w", err)
	}
	return o, nil
})

// Definition returns the JSON of an OpenAPI v3 definition, such as "io.k8s.api.core.v1.Pod", or "" if it does not exist.
func (o *OpenAPI) Definition(name string) (string, error) {
	read, known := o.definitions[packageOf(name)]
	if !known {
		return "", nil
	}
	all, err := read()
	return all[name], err
}

// Names returns the names of all definitions, sorted.
func (o *OpenAPI) Names() ([]string, error) {
	var names []string
	for _, read := range o.definitions {
		all, err := read()
		if err != nil {
			return nil, err
		}
		names = slices.AppendSeq(names, maps.Keys(all))
	}
	slices.Sort(names)
	return names, nil
}

// Document returns a document of /openapi/v3, such as "apis/apps/v1".
func (o *OpenAPI) Document(path string) (string, error) {
	text, err := o.Template("v3/" + path)
	if err != nil {
		return "", err
	}
	overrides, err := o.Overrides("v3/" + path)
	if err != nil {
		return "", err
	}
	definitions, err := o.Closure(append(References(text, ReferenceV3), o.Extra["v3/"+path]...), overrides)
	if err != nil {
		return "", err
	}
	return InsertDefinitions(text, definitions), nil
}

// Template returns a document with DefinitionsPlaceholder: "v2", "v3/apis/apps/v1" or, for a CRD, "crd/v3/namespaced".
func (o *OpenAPI) Template(path string) (string, error) {
	text, err := o.read(documentsDir + path)
	if err != nil {
		return "", err
	}
	pool, err := o.pool()
	if err != nil {
		return "", err
	}
	return expand(text, pool), nil
}

// Overrides returns the definitions of a document that differ from Definition.
func (o *OpenAPI) Overrides(path string) (map[string]string, error) {
	if o.files[overridesDir+path] == nil {
		return nil, nil
	}
	all, err := o.readDefinitions(overridesDir + path)
	if err != nil {
		return nil, err
	}
	pool, err := o.pool()
	if err != nil {
		return nil, err
	}
	for name, text := range all {
		all[name] = expand(text, pool)
	}
	return all, nil
}

// Closure returns the named definitions and all definitions referenced by them. overrides take precedence over recorded
// definitions. Unknown names are omitted.
func (o *OpenAPI) Closure(names []string, overrides map[string]string) (map[string]string, error) {
	found := map[string]string{}
	for queue := slices.Clone(names); len(queue) > 0; {
		name := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if _, done := found[name]; done {
			continue
		}
		text, overridden := overrides[name]
		if !overridden {
			var err error
			if text, err = o.Definition(name); err != nil {
				return nil, err
			}
		}
		if text == "" {
			continue
		}
		found[name] = text
		queue = append(queue, References(text, ReferenceV3)...)
	}
	return found, nil
}

// References returns the names of the definitions referenced in a text.
func References(text, prefix string) []string {
	var names []string
	for {
		_, rest, found := strings.Cut(text, prefix)
		if !found {
			return names
		}
		name, _, _ := strings.Cut(rest, `"`)
		names = append(names, name)
		text = rest
	}
}

// InsertDefinitions replaces the DefinitionsPlaceholder of a document.
func InsertDefinitions(document string, definitions map[string]string) string {
	var all strings.Builder
	for i, name := range slices.Sorted(maps.Keys(definitions)) {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(strconv.Quote(name))
		all.WriteByte(':')
		all.WriteString(definitions[name])
	}
	return strings.Replace(document, DefinitionsPlaceholder, "{"+all.String()+"}", 1)
}

func (o *OpenAPI) read(name string) (string, error) {
	file := o.files[name]
	if file == nil {
		return "", fmt.Errorf("read the recorded OpenAPI documents: no %s", name)
	}
	reader, err := file.Open()
	if err != nil {
		return "", fmt.Errorf("read the recorded OpenAPI documents: %w", err)
	}
	defer reader.Close()
	text := make([]byte, file.UncompressedSize64)
	if _, err := io.ReadFull(reader, text); err != nil {
		return "", fmt.Errorf("read the recorded OpenAPI documents: %s: %w", name, err)
	}
	return string(text), nil
}

func (o *OpenAPI) readDefinitions(name string) (map[string]string, error) {
	text, err := o.read(name)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, definition, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		all[name] = definition
	}
	return all, nil
}

// readPool returns the values of the pool with references expanded.
func (o *OpenAPI) readPool() ([]string, error) {
	text, err := o.read(poolName)
	if err != nil {
		return nil, err
	}
	var pool []string
	for line := range strings.Lines(text) {
		pool = append(pool, expand(strings.TrimSuffix(line, "\n"), pool))
	}
	return pool, nil
}

// expand replaces references by values of the pool. No string of the documents looks like a reference.
func expand(text string, pool []string) string {
	const reference = `{"&":`
	var all strings.Builder
	for {
		before, rest, found := strings.Cut(text, reference)
		all.WriteString(before)
		if !found {
			return all.String()
		}
		number, after, _ := strings.Cut(rest, "}")
		if i, err := strconv.Atoi(number); err == nil && i < len(pool) {
			all.WriteString(pool[i])
		}
		text = after
	}
}

func packageOf(definition string) string {
	return definition[:max(strings.LastIndexByte(definition, '.'), 0)]
}

// Names of the CustomResourceDefinitions in the recorded templates. They do not occur elsewhere in the documents.
const (
	TemplateGroup    = "xgroupx.example"
	TemplateVersion  = "v777"
	TemplatePlural   = "xpluralx"
	TemplateKind     = "Xkindx"
	TemplateListKind = "Xlistkindx"
)
