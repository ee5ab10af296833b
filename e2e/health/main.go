// Health compares what kstatus (as Flux and kubectl plugins use it) and the Lua checks of config/argocd (in the Lua of
// Argo CD) say of stored objects with the table objects.yaml. It prints the table, and ends with 1 on a difference.
//
//	health OBJECTS CHECKS    a YAML file with the rows; the folder of the kustomization with the Lua checks
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

type row struct {
	Name    string                    `json:"name"`
	Kstatus string                    `json:"kstatus"`
	Argocd  string                    `json:"argocd"`
	Message string                    `json:"message"` // that Argo CD shows
	Object  unstructured.Unstructured `json:"object"`
}

// checks returns the file of each kind, as the kustomization names it for Argo CD.
func checks(folder string) (map[string]string, error) {
	var kustomization struct {
		ConfigMapGenerator []struct{ Files []string }
	}
	text, err := os.ReadFile(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &kustomization); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, generator := range kustomization.ConfigMapGenerator {
		for _, file := range generator.Files {
			key, path, _ := strings.Cut(file, "=")
			files[key] = filepath.Join(folder, path)
		}
	}
	return files, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, member := range value {
			table.RawSetString(key, toLua(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(toLua(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	}
	return lua.LNil
}

func argocdOf(file string, object map[string]any) (string, string, error) {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoFile(file); err != nil {
		return "", "", err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("%s returned no table", file)
	}
	return table.RawGetString("status").String(), table.RawGetString("message").String(), nil
}

func compare(rows []row, files map[string]string) (failed int) {
	fmt.Printf("%-36s %-12s %-12s %s\n", "object", "kstatus", "Argo CD", "message")
	for _, row := range rows {
		kind := row.Object.GroupVersionKind()
		file := files["resource.customizations.health."+kind.Group+"_"+kind.Kind]
		kstatus := ""
		if result, err := status.Compute(&row.Object); err != nil {
			kstatus = err.Error()
		} else {
			kstatus = result.Status.String()
		}
		argocd, message, err := argocdOf(file, row.Object.Object)
		if err != nil {
			argocd = err.Error()
		}
		fmt.Printf("%-36s %-12s %-12s %s\n", row.Name, kstatus, argocd, message)
		if kstatus != row.Kstatus || argocd != row.Argocd || message != row.Message {
			fmt.Printf("    expected: %s, %s, '%s'\n", row.Kstatus, row.Argocd, row.Message)
			failed++
		}
	}
	return failed
}

func run(objects, folder string) (int, int, error) {
	var rows []row
	text, err := os.ReadFile(objects)
	if err != nil {
		return 0, 0, err
	}
	if err := yaml.UnmarshalStrict(text, &rows); err != nil {
		return 0, 0, err
	}
	files, err := checks(folder)
	if err != nil {
		return 0, 0, err
	}
	failed := compare(rows, files)
	return len(rows) - failed, failed, nil
}

func main() {
	passed, failed, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(2)
	}
	fmt.Printf("health: %d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}
