package kubeconfig

// Merge joins files as kubectl joins the KUBECONFIG list: each named entry, and the current context, comes whole from
// the first file that has it. The inputs are not changed; nil ones are skipped.
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
		addMissing(&merged.Clusters, file.Clusters)
		addMissing(&merged.Users, file.Users)
		addMissing(&merged.Contexts, file.Contexts)
		addMissing(&merged.Extensions, file.Extensions)
		addMissing(&merged.Preferences.Extensions, file.Preferences.Extensions)
		merged.Preferences.Colors = merged.Preferences.Colors || file.Preferences.Colors
	}
	return merged
}

func addMissing[M ~map[string]T, T any](into *M, from M) {
	if *into == nil && len(from) > 0 {
		*into = make(M, len(from))
	}
	for name, entry := range from {
		if _, exists := (*into)[name]; !exists {
			(*into)[name] = entry
		}
	}
}
