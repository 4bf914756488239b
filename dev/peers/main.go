// Command peers plays known bugs of Kubernetes' caches against this repository's, client-go's and controller-runtime's.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	issue := flag.Int("issue", 0, "play one issue")
	flag.Parse()
	dir, _ := os.MkdirTemp("", "peers")
	ctx := context.Background()
	for _, n := range []string{"clientgo", "controllerruntime", "anykind"} {
		if out, err := exec.Command("go", "build", "-o", dir, "./"+n).CombinedOutput(); err != nil {
			fmt.Println(string(out), err)
			return
		}
	}
	done := make(chan string)
	count := 0
	for _, s := range scenarios {
		if *issue != 0 && s.issue != *issue {
			continue
		}
		for _, o := range []observer{{"client-go", "clientgo", ""}, {"controller-runtime", "controllerruntime", ""}, {"cache", "anykind", ""}, {"audit", "anykind", "audit"}, {"follow", "anykind", "follow"}} {
			o.path = filepath.Join(dir, o.path)
			k := s.kind
			if k == (kind{}) {
				k = configMaps
			}
			count++
			go func() {
				t := newTrial(ctx, o, k)
				shown, err := s.play(t)
				t.close()
				done <- fmt.Sprintf("%d %s: %q %v", s.issue, o.name, shown, err)
			}()
		}
	}
	for range count {
		fmt.Println(<-done)
	}
}
