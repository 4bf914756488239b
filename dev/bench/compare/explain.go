//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
)

// explainComparisons compares anyctl explain with kubectl's, with kinds of the corpus served.
func explainComparisons(kinds int) []comparison {
	var all []comparison
	for _, task := range []string{"cli-explain", "cli-explain-custom"} {
		for _, figure := range []struct{ name, what string }{{"cpu", "CPU"}, {"rss", "peak RSS"}, {"wall", "time"}} {
			all = append(all, comparison{
				task + "-" + figure.name, fmt.Sprintf("%s of the process, %s, with %d kinds of public projects served", figure.what, cliTasks[task].what, kinds), 0.2,
				cost{run{"ours", task, kinds}, figure.name}, cost{run{"theirs", task, kinds}, figure.name},
			})
		}
	}
	return all
}

// defineCorpus creates count definitions of the corpus, with the kind customName, and waits until all are served.
func (s *server) defineCorpus(ctx context.Context, count int) error {
	d, err := readDefinitions()
	if err != nil {
		return err
	}
	if len(d.CRDs) < count {
		return fmt.Errorf("the corpus in %s has %d definitions, want %d", d.dir, len(d.CRDs), count)
	}
	isCustom := func(f corpusFile) bool { return f.Group == customGroup && f.Kind == customName }
	slices.SortStableFunc(d.CRDs, func(a, b corpusFile) int {
		switch {
		case isCustom(a) == isCustom(b):
			return 0
		case isCustom(a):
			return -1
		}
		return 1
	})
	names := make([]string, count)
	err = s.each(ctx, count, func(ctx context.Context, i int) error {
		names[i] = d.CRDs[i].Name
		body, err := d.definition(d.CRDs[i])
		if err != nil {
			return err
		}
		return s.write(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, definitionsTimeout)
	defer cancel()
	_, err = s.client.WaitForResources(ctx, names...)
	return err
}

// definition returns a definition of the corpus without its conversion webhook.
func (d *definitions) definition(crd corpusFile) ([]byte, error) {
	var fields map[string]any
	if err := readJSON(filepath.Join(d.dir, filepath.FromSlash(crd.File)), &fields); err != nil {
		return nil, err
	}
	if spec, ok := fields["spec"].(map[string]any); ok {
		delete(spec, "conversion")
	}
	delete(fields, "status")
	return json.Marshal(fields)
}
