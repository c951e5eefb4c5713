import sys; sys.path.insert(0,"/tmp/w/h/kept-scratch/b")
import old_read as T, re
for k,(c,n) in T.READ.items():
    t=T.conditions(c); print(k, "ok" if len(t)==1 and re.search(rf"\b{n}\b",t[0]) else "MISSING", t)
print([one for one in T.conditions(T.OfAnother()) if "fast" in one])
