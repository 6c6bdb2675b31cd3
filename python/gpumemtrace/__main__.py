import sys

from gpumemtrace._command import main

sys.exit(main())
