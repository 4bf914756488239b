package kubeconfig

// Merge joins files as kubectl joins the KUBECONFIG list: for each named entry, and for the current context, the
// first file that has it wins whole. The inputs stay as they are; nil ones are skipped.
func Merge(files ...*File) *File {
	merged := &File{
		Clusters: map[string]Cluster{},
		Users:    map[string]User{},
		Contexts: map[string]Context{},
	}
	for _, file := range files {
		if file == nil {
			continue
		}
		if merged.CurrentContext == "" {
			merged.CurrentContext = file.CurrentContext
		}
		addMissing(merged.Clusters, file.Clusters)
		addMissing(merged.Users, file.Users)
		addMissing(merged.Contexts, file.Contexts)
	}
	return merged
}

func addMissing[T any](into, from map[string]T) {
	for name, entry := range from {
		if _, taken := into[name]; !taken {
			into[name] = entry
		}
	}
}
