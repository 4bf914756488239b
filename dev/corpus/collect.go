package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/unstructured"
)

const (
	// maxFile limits the size of a file, in bytes; the largest CustomResourceDefinitions have about 1 MB.
	maxFile = 4 << 20
	// maxObjectsOfKind limits the objects of a kind, so that no kind dominates.
	maxObjectsOfKind = 60
)

// found is an object in a module's file.
type found struct {
	object *unstructured.Object
	source string // module@version/path
}

// collector collects definitions and objects, each once.
type collector struct {
	definitions map[string]found // by the definition's name
	objects     map[schema.GroupKind][]found
	seen        map[[sha256.Size]byte]bool
	files       int
	unreadable  int // documents that are not YAML or not an object, mostly templates
}

func newCollector() *collector {
	return &collector{
		definitions: map[string]found{},
		objects:     map[schema.GroupKind][]found{},
		seen:        map[[sha256.Size]byte]bool{},
	}
}

// walk reads the YAML files of a module. The definition with the shortest path in a module wins; the first module with a
// definition wins.
func (c *collector) walk(m *module) error {
	archive, err := zip.OpenReader(m.Zip)
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	slices.SortFunc(archive.File, func(a, b *zip.File) int {
		return cmp.Or(strings.Count(a.Name, "/")-strings.Count(b.Name, "/"), strings.Compare(a.Name, b.Name))
	})
	for _, file := range archive.File {
		if extension := path.Ext(file.Name); extension != ".yaml" && extension != ".yml" || file.UncompressedSize64 > maxFile {
			continue
		}
		if err := c.read(file); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

// read adds the objects of a file. The file's name begins with the module's path and version.
func (c *collector) read(file *zip.File) error {
	reader, err := file.Open()
	if err != nil {
		return err
	}
	defer reader.Close()
	text, err := io.ReadAll(io.LimitReader(reader, maxFile))
	if err != nil {
		return err
	}
	c.files++
	for _, document := range documents(text) {
		for object, err := range unstructured.NewYAMLDecoder(bytes.NewReader(document)).All() {
			if err != nil {
				c.unreadable++
				break
			}
			c.add(found{object, file.Name})
		}
	}
	return nil
}

// documents splits a YAML stream, so that documents after a broken document are read, too.
func documents(text []byte) [][]byte {
	var all [][]byte
	var one []byte
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) {
			all = append(all, one)
			one = nil
			continue
		}
		one = append(one, line...)
	}
	return append(all, one)
}

func (c *collector) add(f found) {
	kind := f.object.GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" || f.object.GetName() == "" {
		c.unreadable++
		return
	}
	if kind.Group == "apiextensions.k8s.io" && kind.Kind == "CustomResourceDefinition" {
		c.addDefinition(f, kind.Version)
		return
	}
	text, err := unstructured.Encode(f.object)
	if err != nil || len(c.objects[kind.GroupKind()]) >= maxObjectsOfKind {
		return
	}
	if sum := sha256.Sum256(text); !c.seen[sum] {
		c.seen[sum] = true
		c.objects[kind.GroupKind()] = append(c.objects[kind.GroupKind()], f)
	}
}

// addDefinition adds a definition acceptable for an API server: of v1, complete, and not a project's test data.
func (c *collector) addDefinition(f found, version string) {
	name := f.object.GetName()
	if _, known := c.definitions[name]; known || version != "v1" {
		return
	}
	versions, _, err := unstructured.Get[[]any](f.object, "spec", "versions")
	group, _, _ := unstructured.Get[string](f.object, "spec", "group")
	plural, _, _ := unstructured.Get[string](f.object, "spec", "names", "plural")
	if err == nil && len(versions) > 0 && group != "" && name == plural+"."+group && !isTestData(f.source, group) {
		c.definitions[name] = f
	}
}

// isTestData reports whether a definition is made for a project's own tests. Definitions in end-to-end tests are often from
// different projects, and count.
func isTestData(source, group string) bool {
	return slices.ContainsFunc(strings.Split(source, "/"), func(element string) bool {
		return element == "testdata" || element == "fixtures"
	}) || slices.ContainsFunc(strings.Split(group, "."), func(label string) bool {
		return label == "example" || strings.HasSuffix(label, "test")
	})
}

// sortedDefinitions returns the definitions by name.
func (c *collector) sortedDefinitions() []found {
	var all []found
	for _, one := range c.definitions {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.object.GetName(), b.object.GetName()) })
	return all
}

// kinds returns the kinds of the objects, sorted.
func (c *collector) kinds() []schema.GroupKind {
	var all []schema.GroupKind
	for kind := range c.objects {
		all = append(all, kind)
	}
	slices.SortFunc(all, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// collect collects from all modules.
func collect(modules []module) (*collector, error) {
	c := newCollector()
	for i := range modules {
		if err := c.walk(&modules[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", &modules[i], err)
		}
	}
	return c, nil
}
