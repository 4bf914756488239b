package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/anykind/anykind/unstructured"
)

// format is part of the folder's name: raise it when the content of the folder changes.
const format = "2"

// Index is the content of index.json. Files are relative to the folder.
type Index struct {
	Modules    []string    `json:"modules"`
	CRDs       []IndexFile `json:"crds"`      // of projects, sorted by name
	Synthetic  []IndexFile `json:"synthetic"` // for cases absent in all projects
	Objects    []IndexFile `json:"objects"`   // of custom and built-in kinds
	Files      int         `json:"files"`     // YAML files read
	Unreadable int         `json:"unreadable"`
}

// IndexFile is an object of a corpus. For a CustomResourceDefinition, Group and Kind are of the defined kind.
type IndexFile struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Kind   string `json:"kind"`
	File   string `json:"file"`
	Source string `json:"source"` // module@version/path, or "synthetic"
}

// ensure returns the folder of the corpus, and collects it first if needed.
func ensure(ctx context.Context) (string, error) {
	root := os.Getenv("ANYKIND_CORPUS_CACHE")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find the user's cache folder: %w (set ANYKIND_CORPUS_CACHE)", err)
		}
		root = filepath.Join(cache, "anykind", "corpus")
	}
	dir := filepath.Join(root, fmt.Sprintf("%.8x", sha256.Sum256([]byte(format+"\n"+moduleList))))
	if _, err := readIndex(dir); err == nil {
		return dir, nil
	}
	modules, err := parseModules(moduleList)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "corpus: collecting from %d Go modules (about a minute, cached afterwards)\n", len(modules))
	if err := download(ctx, modules); err != nil {
		return "", err
	}
	c, err := collect(modules)
	if err != nil {
		return "", err
	}
	return dir, publish(dir, func(temporary string) error { return c.write(temporary, modules) })
}

// publish writes a folder under a temporary name first: dir is complete or missing, even with concurrent writers.
func publish(dir string, write func(dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	if err := write(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		if _, broken := readIndex(dir); broken == nil {
			return nil // a concurrent writer was faster
		}
		return err
	}
	return nil
}

func (c *collector) write(dir string, modules []module) error {
	index := Index{Files: c.files, Unreadable: c.unreadable}
	for _, m := range modules {
		index.Modules = append(index.Modules, m.String())
	}
	for _, one := range c.sortedDefinitions() {
		entry, err := writeDefinition(dir, "crds", one)
		if err != nil {
			return err
		}
		index.CRDs = append(index.CRDs, entry)
	}
	for _, one := range synthetic() {
		entry, err := writeDefinition(dir, "synthetic", found{one, "synthetic"})
		if err != nil {
			return err
		}
		index.Synthetic = append(index.Synthetic, entry)
	}
	for _, kind := range c.kinds() {
		for n, one := range c.objects[kind] {
			group := kind.Group
			if group == "" {
				group = "core"
			}
			file := path.Join("objects", fileName(group), fileName(kind.Kind), fmt.Sprintf("%d.json", n))
			if err := writeObject(dir, file, one.object); err != nil {
				return err
			}
			index.Objects = append(index.Objects, IndexFile{one.object.GetName(), kind.Group, kind.Kind, file, one.source})
		}
	}
	text, err := json.MarshalIndent(&index, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "index.json"), text, 0o640)
}

func writeDefinition(dir, folder string, one found) (IndexFile, error) {
	name := one.object.GetName()
	group, _, err := unstructured.Get[string](one.object, "spec", "group")
	if err != nil {
		return IndexFile{}, err
	}
	kind, _, err := unstructured.Get[string](one.object, "spec", "names", "kind")
	if err != nil {
		return IndexFile{}, err
	}
	file := path.Join(folder, fileName(name)+".json")
	return IndexFile{name, group, kind, file, one.source}, writeObject(dir, file, one.object)
}

// fileName returns text as the name of a file: names and kinds are external input and may be long.
func fileName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
	if len(name) > 120 || strings.Trim(name, ".") == "" {
		return fmt.Sprintf("%.60s-%.8x", strings.Trim(name, "."), sha256.Sum256([]byte(text)))
	}
	return name
}

func writeObject(dir, file string, object *unstructured.Object) error {
	text, err := unstructured.Encode(object)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o640)
}

func readIndex(dir string) (*Index, error) {
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var index Index
	return &index, json.Unmarshal(text, &index)
}

// print writes the number of definitions and objects of each project.
func (x *Index) print(out io.Writer) {
	type count struct{ crds, objects int }
	counts := map[string]*count{"synthetic": {}}
	for _, m := range x.Modules {
		counts[m] = &count{}
	}
	of := func(f IndexFile) *count {
		for name, count := range counts {
			if f.Source == name || strings.HasPrefix(f.Source, name+"/") {
				return count
			}
		}
		return &count{}
	}
	for _, f := range slices.Concat(x.CRDs, x.Synthetic) {
		of(f).crds++
	}
	for _, f := range x.Objects {
		of(f).objects++
	}
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer func() { _ = table.Flush() }()
	fmt.Fprintln(table, "project\tdefinitions\tobjects")
	for _, name := range append(slices.Clone(x.Modules), "synthetic") {
		fmt.Fprintf(table, "%s\t%d\t%d\n", name, counts[name].crds, counts[name].objects)
	}
	fmt.Fprintf(table, "all\t%d\t%d\n", len(x.CRDs)+len(x.Synthetic), len(x.Objects))
	fmt.Fprintf(table, "%d YAML files; %d documents are templates or no objects\n", x.Files, x.Unreadable)
}
